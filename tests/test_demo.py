from corrvae.demo import run_demo
from corrvae.experiments import reproduce as reproducing
from corrvae.experiments.worker import perform
from support.experiments import tiny_recipe


def test_the_demo_prints_its_table_and_writes_the_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reproducing, "find_recipe", tiny_recipe)
    folder = tmp_path / "new" / "folder"
    tally = run_demo(folder, start=perform)
    printed = capsys.readouterr().out
    assert "CVAE_ind" in printed
    assert f"The report is in {folder / 'report.html'}" in printed
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")
    again = run_demo(folder, start=perform)
    assert again.skipped == len(tally.records)
