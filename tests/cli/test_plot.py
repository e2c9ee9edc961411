import json

import pytest
from typer.testing import CliRunner

from corrvae.cli import app
from support.runs import make_files, write_rows


def ask(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("run"))


def test_a_page_and_a_map_are_drawn(files, tmp_path):
    table = write_rows(tmp_path / "t.csv", [("id", "town"), ("p0", "Rome"), ("p1", "Oslo")])
    result = ask("plot", files.run, "--out", tmp_path / "page.html", "--color", f"{table}:town")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"The picture is in {tmp_path / 'page.html'}\n"
    assert "Rome (1)" in (tmp_path / "page.html").read_text(encoding="utf-8")
    result = ask("plot", files.run, "--out", tmp_path / "map.png", "--json")
    assert json.loads(result.stdout) == {"out": str(tmp_path / "map.png")}
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_without_a_file_the_page_lies_beside_the_run(files):
    before = sorted(path.name for path in files.run.iterdir())
    assert ask("plot", files.run, "--quiet").output == ""
    assert (files.folder / "run.html").is_file()
    assert sorted(path.name for path in files.run.iterdir()) == before


def test_report_knows_a_run(files, tmp_path):
    result = ask("report", files.run, "--out", tmp_path / "report.html")
    assert (result.exit_code, result.output) == (0, f"The report is in {tmp_path / 'report.html'}\n")
    assert "a trained CVAE_ind" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options", [["--out", "page.pdf"], ["--map", "tsne"], ["--color", "none.csv:town"], ["--out", "nowhere/page.html"]]
)
def test_what_is_wrong_is_one_sentence(options, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = ask("plot", files.run, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
