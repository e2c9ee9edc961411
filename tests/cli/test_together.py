"""Commands that the launcher runs in several processes."""

import os

import pytest
import typer
from typer.testing import CliRunner

from corrvae.cli import app
from corrvae.cli.exits import BAD_INPUT, FAILED, plainly
from corrvae.cli.holding import hold
from corrvae.cli.outputs import Output
from corrvae.cli.together import as_ranks, speaks
from corrvae.errors import LostRankError, TrainingError
from corrvae.ranks import Ranks, current_ranks
from support.runs import make_files, make_frame
from support.several import run_ranks

QUESTIONS = {
    "embed": ["embed", "run", "--features", "new.csv"],
    "embed, trained": ["embed", "run", "--json"],
    "neighbors": ["neighbors", "run", "-k", "3"],
    "neighbors of new points": ["neighbors", "run", "-k", "60", "--features", "new.csv"],
    "links": ["links", "run", "--top", "40", "--json"],
    "match": ["match", "run", "--left", "new.csv", "--right", "features.csv", "--one-to-one"],
    "cluster": ["cluster", "run", "-k", "3"],
    "weights": ["weights", "edges.csv", "--method", "sample"],
    "info": ["info", "run"],
}
WRONG = {
    "no run": ["links", "nowhere"],
    "no option": ["links", "run", "--best", "3"],
    "no id": ["neighbors", "run", "--query", "nobody"],
    "another trains there": ["fit", "--features", "features.csv", "--out", "taken", "--steps", "1"],
}


def ask(arguments):
    ended = CliRunner().invoke(app, arguments)
    return ended.exit_code, ended.stdout, ended.stderr


def as_launched(folder):
    """Ask as a process that the launcher started; the group is there already."""
    from corrvae.answers import embedding

    ranks = current_ranks()
    os.environ |= {"RANK": str(ranks.index), "WORLD_SIZE": str(ranks.count), "MASTER_ADDR": "", "MASTER_PORT": "1"}
    os.chdir(folder)
    embedding.BLOCK = 3
    found = {name: ask(arguments) for name, arguments in (QUESTIONS | WRONG).items()}
    written = [ask([*QUESTIONS["embed"], "--out", f"z.{ending}"])[0] for ending in ("npy", "parquet")]
    # what only one rank misses
    found["not on both"] = ask(["weights", "edges.csv" if ranks.is_first else "gone.csv"])
    few = ["--out", "few", "--vertex-batch", "1", "--steps", "1", "--quiet"]
    found["not shared"] = ask(["fit", "--features", "features.csv", "--graph", "edges.csv", *few])
    # what the one that speaks meets: a reader who has left, and an error that is no common one
    for name, error in (("left", typer.Exit(0)), ("broken", TrainingError(7, "edge", (3,), None))):
        with pytest.MonkeyPatch.context() as patch:
            if ranks.is_first:
                patch.setattr(Output, "give", fail_by(error))
            found[name] = ask(["neighbors", "run", "-k", "3"])
    with pytest.MonkeyPatch.context() as patch:
        if ranks.is_first:
            patch.setattr(embedding, "write_blocks", leave_after_one)
        found["left amid"] = ask(QUESTIONS["embed"])
    return found, written


def leave_after_one(writer, blocks):
    next(blocks)
    raise typer.Exit(0)


def fail_by(error):
    def fail(*_):
        raise error

    return fail


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    files = make_files(tmp_path_factory.mktemp("together"), "pairwise")
    make_frame(8, seed=9, prefix="new").rename_axis("id").to_csv(files.folder / "new.csv")
    return files.folder


def test_ranks_answer_as_one_does_and_one_speaks(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with hold(folder / "taken"):
        wanted = {name: ask(arguments) for name, arguments in (QUESTIONS | WRONG).items()}
        (first, _), *others = run_ranks(2, as_launched, str(folder))
    assert wanted["another trains there"][2].startswith("taken: another corrvae is training in this folder")
    for name in QUESTIONS:
        assert first[name] == wanted[name], name
        assert wanted[name][0] == 0
    for name in WRONG:
        assert first[name] == wanted[name], name
        assert wanted[name][0] == BAD_INPUT
    assert first["not on both"][0] == BAD_INPUT
    assert "gone.csv: there is no such file" in first["not on both"][2]
    assert first["not shared"][0] == BAD_INPUT
    assert "vertex_batch=1 cannot be shared among 2 processes" in first["not shared"][2]
    assert not (folder / "few").exists()
    assert first["left"] == first["left amid"] == (0, "", "")
    assert first["broken"][0] == FAILED
    assert "after 7 steps edge is infinite" in first["broken"][2]
    for found, written in others:
        assert written == [0, 0]
        for name, (code, stdout, stderr) in found.items():
            assert (code, stdout, stderr) == (first[name][0], "", ""), name
    assert (folder / "z.npy").stat().st_size > 0


def test_a_process_by_itself_speaks(monkeypatch, capsys):
    with as_ranks() as ranks:
        assert ranks == Ranks()
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, spoken in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        assert speaks() == spoken
        Output().say("ready")
        assert ("ready" in capsys.readouterr().err) == spoken
        with pytest.raises(typer.Exit) as ended, plainly():
            raise ValueError("row 3")
        assert ended.value.exit_code == BAD_INPUT
        assert ("row 3" in capsys.readouterr().err) == spoken
        with pytest.raises(typer.Exit) as ended, plainly():
            raise LostRankError("closed")
        assert ended.value.exit_code == FAILED
        assert "another process of this run has ended" in capsys.readouterr().err  # by all that are left
