"""Every file that the program writes is there whole or not at all, also when the disk is full or it is interrupted."""

import signal

import pytest

import faults
from nursery import Call

NO_ROOM = {"FSIZE": 64}
COMPILED = ("links", "match", "neighbors", "score")


@pytest.fixture(scope="module")
def run(nursery, tmp_path_factory):
    """A finished run with its files beside it."""
    folder = tmp_path_factory.mktemp("outputs")
    (ending,) = nursery.run(
        Call("fragile:program", {"arguments": [*faults.write_files(folder), "--out", f"{folder}/run"]})
    )
    assert ending.code == 0, ending.errors
    # what is compiled at its first use is kept beside the package, which would need room too
    (folder / "first").mkdir()
    compiling = [call for call in calls(folder / "run", folder / "first") if call.arguments["arguments"][0] in COMPILED]
    assert {ending.code for ending in nursery.run(*compiling)} == {0}
    return folder / "run"


def asked(run):
    graph, features = run.parent / "edges.csv", run.parent / "x.csv"
    return {
        "embedded.csv": ["embed", run],
        "embedded.parquet": ["embed", run],
        "embedded.npy": ["embed", run],
        "neighbors.csv": ["neighbors", run, "-k", 3],
        "links.parquet": ["links", run, "--top", 20],
        "match.csv": ["match", run, "--left", features, "--right", features],
        "cluster.csv": ["cluster", run],
        "score.csv": ["score", run, "--pairs", graph],
        "weights.csv": ["weights", graph],
        "page.html": ["plot", run],
        "map.png": ["plot", run],
    }


def calls(run, folder, **how):
    return [
        Call("fragile:program", {"arguments": [*map(str, words), "--quiet", "--out", str(folder / name)]}, **how)
        for name, words in asked(run).items()
    ]


def test_a_disk_without_room_leaves_what_was_there_and_is_told(nursery, run, tmp_path):
    for name in asked(run):
        (tmp_path / name).write_text("before")
    for name, ending in zip(asked(run), nursery.run(*calls(run, tmp_path, limits=NO_ROOM)), strict=True):
        assert ending.code == 3, (name, ending.code, ending.errors)
        assert "File too large" in ending.errors or "file too large" in ending.errors
        assert str(tmp_path) in ending.errors
        assert "Traceback" not in ending.errors
    assert {place.name: place.read_text() for place in tmp_path.iterdir()} == dict.fromkeys(asked(run), "before")


def test_a_run_without_room_for_its_files_is_told_and_goes_on_later(nursery, run, tmp_path):
    fit = faults.write_files(tmp_path)
    whole = faults._files(run)
    for limit in (64, 1200, 2500):  # no room for settings, for a checkpoint, for the model
        out = tmp_path / f"run-{limit}"
        (ending,) = nursery.run(
            Call("fragile:program", {"arguments": [*fit, "--out", str(out)]}, limits={"FSIZE": limit})
        )
        assert ending.code == 3, (limit, ending.code, ending.errors)
        assert "Traceback" not in ending.errors
        again = (
            ["fit", "--out", str(out), "--resume", "--quiet"]
            if (out / "run.toml").exists()
            else [*fit, "--out", str(out)]
        )
        (ending,) = nursery.run(Call("fragile:program", {"arguments": again}))
        assert ending.code == 0, (limit, ending.errors)
        found = faults._files(out)
        assert found.keys() == whole.keys()
        assert [name for name in whole if name != "run.toml" and found[name] != whole[name]] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_files_are_read_ends_in_a_sentence_and_leaves_nothing(nursery, tmp_path, number):
    fit = [*faults.write_files(tmp_path), "--out", str(tmp_path / "run")]
    (ending,) = nursery.run(Call("fragile:program_signalled", {"arguments": fit, "number": int(number)}))
    assert (ending.code, ending.errors) == (1, "stopped before training began; nothing was written\n")
    assert not (tmp_path / "run").exists()
