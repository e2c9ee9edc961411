import csv
from types import SimpleNamespace

from corrvae.training import Checkpoint, CSVLog, History, Progress, ProgressBar, train
from support.training import small_data, small_model
from support.unchecked import unchecked


def progress(step: int, evaluation=None) -> Progress:
    return Progress(step, 40, step / 10, step / 100, -5.0, evaluation)


def row(step: int, total: float = -2.5) -> dict[str, float]:
    return {"step": step, "total": total, "validation_total": total - 1}


def rows_of(path) -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_a_csv_file_has_the_columns_of_the_history(tmp_path):
    history = train(small_model(), small_data(), max_steps=14, callbacks=[CSVLog(tmp_path / "log.csv")]).history
    names, *rows = rows_of(tmp_path / "log.csv")
    assert names == list(history)
    assert [[float(cell) for cell in cells] for cells in rows] == list(
        map(list, zip(*history.columns.values(), strict=True))
    )


def test_a_resumed_run_leaves_the_csv_file_of_an_uninterrupted_one(tmp_path):
    def fit(name: str, max_steps: int) -> list[list[str]]:
        callbacks = [CSVLog(tmp_path / name / "log.csv"), Checkpoint(tmp_path / name / "checkpoint", steps=7)]
        train(small_model(), small_data(), max_steps=max_steps, callbacks=callbacks)
        names, *rows = rows_of(tmp_path / name / "log.csv")
        return [[cell for cell, column in zip(cells, names, strict=True) if column != "seconds"] for cells in rows]

    assert len(fit("stopped", 14)) < len(fit("stopped", 28)) == len(fit("whole", 28))
    assert fit("stopped", 28) == fit("whole", 28)


def test_columns_that_end_early_are_filled(tmp_path):
    log, history = CSVLog(tmp_path / "new" / "log.csv"), History()
    with unchecked():
        log.start(SimpleNamespace(history=history))
    history.append({"step": 5, "total": 0.5, "validation_total": -0.5})
    history.append({"step": 10, "total": 1.5})
    log(progress(9))
    assert not log.path.exists()
    log(progress(10, row(10)))
    assert rows_of(log.path) == [["step", "total", "validation_total"], ["5", "0.5", "-0.5"], ["10", "1.5", ""]]


def test_a_bar_moves_and_stops(capsys):
    with ProgressBar() as bar:
        for step in range(1, 41):
            bar(progress(step, row(step) if step == 40 else None))
    shown = capsys.readouterr().err
    assert "epoch 4.0" in shown
    assert "validation -3.50" in shown
    assert "40/40" in shown
    with ProgressBar():  # no step was taken
        pass
