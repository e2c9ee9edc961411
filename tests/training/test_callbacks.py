import csv
import sys

import pytest

from corrvae.errors import DataFileError
from corrvae.training import CSVLog, Progress, ProgressBar, TensorBoardLog, train
from support.training import small_data, small_model


def progress(step: int, evaluation=None) -> Progress:
    return Progress(step, 40, step / 10, step / 100, -5.0, evaluation)


def row(step: int, total: float = -2.5) -> dict[str, float]:
    return {"step": step, "total": total, "validation_total": total - 1}


def rows_of(path) -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_a_csv_file_has_a_row_for_each_evaluation(tmp_path):
    log = CSVLog(tmp_path / "new" / "log.csv")
    for step in range(1, 11):
        log(progress(step, row(step, 0.1) if step % 5 == 0 else None))
    expected = [["step", "total", "validation_total"], ["5", "0.1", "-0.9"], ["10", "0.1", "-0.9"]]
    assert rows_of(tmp_path / "new" / "log.csv") == expected


def test_a_csv_file_has_the_columns_of_the_history(tmp_path):
    history = train(small_model(), small_data(), max_steps=14, callbacks=[CSVLog(tmp_path / "log.csv")]).history
    names, *rows = rows_of(tmp_path / "log.csv")
    assert names == list(history)
    assert [[float(cell) for cell in cells] for cells in rows] == list(
        map(list, zip(*history.columns.values(), strict=True))
    )


def test_a_resumed_run_continues_a_csv_file_where_it_is(tmp_path):
    path = tmp_path / "log.csv"
    first = CSVLog(path)
    for step in (1, 5, 10, 15):
        first(progress(step, row(step) if step > 1 else None))
    again = CSVLog(path)
    for step in (8, 9, 10):  # resumed from a checkpoint after step 7
        again(progress(step, row(10, -9.0) if step == 10 else None))
    assert [line[:2] for line in rows_of(path)[1:]] == [["5", "-2.5"], ["10", "-9.0"]]


@pytest.mark.parametrize("reused", [True, False])
def test_another_run_begins_a_csv_file_anew(tmp_path, reused):
    path = tmp_path / "log.csv"
    first = CSVLog(path)
    with first:
        for step in range(1, 11):
            first(progress(step, row(step) if step % 5 == 0 else None))
    with first if reused else CSVLog(path) as second:
        for step in range(1, 17):
            second(progress(step, row(step, -9.0) if step % 8 == 0 else None))
    assert [line[:2] for line in rows_of(path)[1:]] == [["8", "-9.0"], ["16", "-9.0"]]


@pytest.mark.parametrize("content", [b"id,name\n1,x\n", b"\xff\xfe\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"log\.csv: is not the log of this run"):
        CSVLog(path)(progress(5, row(5)))
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        ("", []),
        ("step,tot", []),  # the disk was full as the file began
        ("step,total,validation_total\r\n5,-2.5,-3.5\r\n1", ["5"]),  # of 10, or 12, or 150
        ("step,total,validation_total\r\n5,-2.5,-3.5\r\n6,-2\r\n\r\nx,1,2\r\n7,-2.5,-3.5\r\n", ["5", "7"]),
    ],
)
def test_a_csv_file_that_was_cut_off_is_continued(tmp_path, left, kept):
    path = tmp_path / "log.csv"
    path.write_text(left, newline="")
    CSVLog(path)(progress(20, row(20)))
    assert [line[0] for line in rows_of(path)] == ["step", *kept, "20"]


def test_a_bar_moves_a_few_times_a_second_and_stops(capsys):
    with ProgressBar() as bar:
        for step in range(1, 41):
            bar(progress(step, row(step) if step == 40 else None))
    shown = capsys.readouterr().err
    assert "epoch 4.0" in shown
    assert "validation -3.50" in shown
    assert "40/40" in shown
    with ProgressBar():  # no step was taken
        pass


def test_tensorboard_receives_every_term(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoardLog(tmp_path) as log:
        log(progress(1))
        log(progress(5, row(5)))
        log(progress(10, row(10, -2.0)))
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert set(found.Tags()["scalars"]) == {"training/total", "validation/total"}
    assert [(event.step, event.value) for event in found.Scalars("training/total")] == [(5, -2.5), (10, -2.0)]
    assert [event.value for event in found.Scalars("validation/total")] == [-3.5, -3.0]


def test_tensorboard_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with TensorBoardLog(tmp_path) as log, pytest.raises(ImportError, match="pip install tensorboard"):
        log(progress(5, row(5)))
