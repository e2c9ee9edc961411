import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from corrvae.errors import DataFileError
from corrvae.experiments.records import write_record
from corrvae.experiments.tables import result_table, task_tables, write_tables
from support.experiments import made_record

# By hand: the mean of 0.2, 0.3 and 0.7 is 0.4; the squares of -0.2, -0.1 and 0.3 sum to 0.14, halved 0.07, its root
# 0.2646. The seconds 60, 90 and 120 are 1.5 minutes on average.
RECORDS = [
    *(
        made_record(seed=seed, scores={"nmi": nmi, "ari": 2 * nmi, "residual": 1e-6}, seconds=seconds)
        for seed, nmi, seconds in ((2, 0.7, 120.0), (0, 0.2, 60.0), (1, 0.3, 90.0))
    ),
    made_record(model="truth", label="true z", scores={"nmi": 0.9}, peak_megabytes=1234.5),
    made_record(model="vae", label="VAE", scores={"nmi": 0.004, "ari": 0.001}),
]


def test_by_hand():
    table = result_table(RECORDS)
    assert table.title == "clustering on synthetic tree, 60 points: the paper's settings"
    assert table.columns == (
        "model",
        "paper",
        "NMI",
        "ARI",
        "residual",
        "seeds",
        "minutes",
        "MB",
    )
    assert table.rows == (
        ("VAE", "0.0031 ± 0.0059", "0.0040", "0.001", "", "1", "1.5", "512"),
        ("CVAE_ind", "0.2821 ± 0.1599", "0.4000 ± 0.2646", "0.8", "1e-06", "3", "1.5", "512"),
        ("true z", "", "0.9000", "", "", "1", "1.5", "1,234"),
    )


def test_markdown_has_a_cell_for_each_column():
    lines = result_table(RECORDS).to_markdown().splitlines()
    assert lines[0].startswith("### clustering on")
    assert {line.count("|") for line in lines if line.startswith("|")} == {9}
    assert "| CVAE_ind | 0.2821 ± 0.1599 | 0.4000 ± 0.2646 | 0.8 | 1e-06 | 3 | 1.5 | 512 |" in lines


def test_matching_names_its_data_and_the_papers():
    record = made_record(task="matching", scores={"reciprocal_rank": 0.5, "hits_1": 0.4}, data={"name": "MovieLens-1M"})
    table = result_table([record])
    assert "MovieLens-1M" in table.title
    assert table.columns[1] == "paper"
    assert "paper: the same, on MovieLens-20M;" in table.caption
    assert table.rows[0][1:4] == ("0.6608 ± 0.0066", "0.5000", "0.4")


def test_captions_say_what_does_not_compare():
    quick = result_table([made_record(recipe="quick")]).caption
    assert "paper: the same, on synthetic tree, 10,000 points, not to be held against these small data;" in quick
    assert "where the residual is above 0.1, no cut stands out" in quick
    assert "small data" not in result_table(RECORDS).caption


def test_corr_is_held_against_ind_seed_by_seed():
    """By hand: on seeds 0 and 1 it is 0.1 and 0.3 above, 0.2 on average; half of 0.3 - 0.1 is the standard error."""
    corr = [made_record(model="corr", seed=seed, scores={"nmi": nmi}) for seed, nmi in ((0, 0.3), (1, 0.6), (9, 0.1))]
    said = "CVAE_corr less CVAE_ind, seed by seed: +0.2000, with a standard error of 0.1000."
    assert result_table([*RECORDS, *corr]).caption.endswith(said)
    assert "seed by seed" not in result_table([*RECORDS, *corr[1:]]).caption


def test_models_that_are_alike_differ_by_nothing():
    alike = (("ind", 0.5), ("corr", 0.499999))
    made = [made_record(model=model, seed=seed, scores={"nmi": nmi}) for seed in (0, 1) for model, nmi in alike]
    assert "seed by seed: +0.0000," in result_table(made).caption


def test_a_model_that_the_recipe_lost_comes_last():
    table = result_table([*RECORDS, made_record(model="older", label="older")])
    assert [row[0] for row in table.rows] == ["VAE", "CVAE_ind", "true z", "older"]


def test_the_terminal_shows_the_same():
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(result_table(RECORDS).to_rich())
    shown = console.export_text()
    for cell in ("0.4000 ± 0.2646", "0.2821 ± 0.1599", "true z", "on synthetic tree, 10,000 points", "residual", "MB"):
        assert cell in shown
    assert "More columns" not in shown
    console.file.close()


@pytest.mark.parametrize(
    ("width", "dropped"),
    [
        (80, ["MRR", "hits@", "AUC", "validation NCRR"]),
        (70, ["MRR", "MB", "minutes", "seeds"]),
        (60, ["MRR", "paper"]),
    ],
)
def test_a_narrow_terminal_shows_whole_scores_of_fewer_kinds(width, dropped):
    scores = dict.fromkeys(("ncrr", "mrr", "hits_10", "hits_100", "auc", "validation_ncrr"), 0.123456)
    records = [
        made_record(task="links", model=model, label=label, seed=seed, scores=scores)
        for model, label in (("ind", "CVAE_ind"), ("ind+graph", "CVAE_ind, graph features"))
        for seed in (0, 1)
    ]
    console = Console(width=width, file=io.StringIO())
    console.print(result_table(records).to_rich(width))
    shown = console.file.getvalue()
    assert shown.count("0.1235 ± 0.0000") == 2
    assert ("0.0160 ± 0.0004" in shown) == (width > 60)
    assert "CVAE_ind, graph features" in shown
    assert "…" not in shown
    heading = shown.splitlines()[2]
    assert not [column for column in dropped if column in heading]
    assert "More columns are in the Markdown file." in " ".join(shown.split())
    assert "validation NCRR" in result_table(records).to_markdown()


def test_what_is_not_of_one_kind_is_refused():
    with pytest.raises(ValueError, match="no records"):
        result_table([])
    with pytest.raises(ValueError, match="one task and recipe, not of 2"):
        result_table([*RECORDS, made_record(recipe="quick")])


def test_a_file_has_a_table_for_each_recipe(tmp_path):
    for record in (*RECORDS, made_record(recipe="recommended"), made_record(task="links", scores={"ncrr": 0.1})):
        write_record(tmp_path, record)
    path = write_tables(tmp_path, "clustering")
    assert path == tmp_path / "clustering.md"
    titles = re.findall("^### (.*)", path.read_text(), re.MULTILINE)
    assert [title.rpartition(": ")[2] for title in titles] == ["recommended recipe", "the paper's settings"]
    assert len(task_tables(tmp_path, "links")) == 1
    assert not list(tmp_path.glob("*.part"))


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    write_record(tmp_path, RECORDS[0])
    (tmp_path / "clustering.md").mkdir()
    with pytest.raises(DataFileError, match=r"clustering\.md: cannot be written"):
        write_tables(tmp_path, "clustering")
    assert not list(tmp_path.glob("*.part"))


def test_drafts_of_two_processes_do_not_meet(tmp_path, monkeypatch):
    write_record(tmp_path, RECORDS[0])
    drafts, replace = [], Path.replace
    monkeypatch.setattr(Path, "replace", lambda draft, path: drafts.append(draft) or replace(draft, path))
    for process in (11, 12):
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        write_tables(tmp_path, "clustering")
    assert len(set(drafts)) == 2
