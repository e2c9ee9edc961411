import pytest

from corrvae.experiments.spending import Spending, read_spending, spending_path, write_spending


def test_what_is_written_is_read(tmp_path):
    write_spending(tmp_path / "seed-0", Spending(3.5, 100.0))
    assert not spending_path(tmp_path / "seed-0").exists()  # without a checkpoint there is nothing to go on from
    (tmp_path / "seed-0").mkdir()
    write_spending(tmp_path / "seed-0", Spending(3.5, 100.0))
    assert read_spending(tmp_path / "seed-0") == Spending(3.5, 100.0)
    assert {path.name for path in tmp_path.iterdir()} == {"seed-0", "seed-0.spent.json"}
    (tmp_path / "seed-0").rmdir()
    assert read_spending(tmp_path / "seed-0") == Spending()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", '{"mood": 1}', '{"seconds": "x"}', '{"seconds": NaN}', '{"seconds": -1}', '{"seconds": null}'],
)
def test_what_cannot_be_read_counts_nothing(text, tmp_path):
    (tmp_path / "seed-0").mkdir()
    spending_path(tmp_path / "seed-0").write_text(text)
    assert read_spending(tmp_path / "seed-0") == Spending()
