"""SIGINT and SIGTERM save and end with 1; a second one ends the program at once."""

import signal

import numpy as np
import pytest

import fragile
from corrvae import load
from nursery import Call


@pytest.fixture
def files(tmp_path):
    counts, graph = fragile.data()
    rows = [",".join([f"v{i}", *map(str, row.astype(int))]) for i, row in enumerate(counts)]
    (tmp_path / "x.csv").write_text("id," + ",".join(f"f{k}" for k in range(counts.shape[1])) + "\n" + "\n".join(rows))
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"v{i},v{j}" for i, j in graph.edges))
    return tmp_path


def arguments(files, out):
    options = {"features": files / "x.csv", "graph": files / "edges.csv", "out": files / out, "components": 2}
    options |= {"hidden": 6, "steps": 120, "vertex-batch": 8, "checkpoint-every": 5, "likelihood": "multinomial"}
    return ["fit", *(str(part) for name, value in options.items() for part in (f"--{name}", value)), "--quiet"]


def contents(folder):
    return {place.name: place.read_bytes() for place in sorted(folder.iterdir()) if place.is_file()}


def test_a_program_that_is_stopped_saves_and_goes_on_to_the_same_bytes(nursery, files):
    for out in ("whole", "again"):
        (ending,) = nursery.run(Call("fragile:program", {"arguments": arguments(files, out)}))
        assert ending.code == 0, ending.errors
    assert contents(files / "whole").keys() == contents(files / "again").keys()
    for name, bytes_of in contents(files / "whole").items():
        if name != "run.toml":  # which names the folder
            assert bytes_of == contents(files / "again")[name], name
    for number in (signal.SIGINT, signal.SIGTERM):
        out = files / number.name
        call = {"arguments": arguments(files, number.name)}
        once = str(out / "checkpoint")
        (ending,) = nursery.run(Call("fragile:program", call, kill_after=0.0, once=once, signals=(int(number),)))
        assert ending.code == 1, ending.errors
        assert "--resume" in ending.errors
        assert load(out).stopped_ == "interrupted"
        resume = ["fit", "--out", str(out), "--resume", "--quiet"]
        (ending,) = nursery.run(Call("fragile:program", {"arguments": resume}))
        assert ending.code == 0, ending.errors
        assert fragile.digest(load(out)) == fragile.digest(load(files / "whole"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(nursery, tmp_path, number):
    call = Call(
        "fragile:wait_in_training",
        {"folder": str(tmp_path)},
        kill_after=0.1,
        once=str(tmp_path / "asleep"),
        signals=(int(number), int(number)),
        apart=0.3,
        timeout=250.0,
    )
    (ending,) = nursery.run(call)
    assert "KeyboardInterrupt" in ending.errors
    assert ending.seconds < 240.0  # it would have slept for 300


def test_the_first_signal_lets_a_step_finish(nursery, tmp_path):
    """Asked to stop while it sleeps, it goes on sleeping: a step is not torn in two."""
    call = Call(
        "fragile:wait_in_training",
        {"folder": str(tmp_path)},
        kill_after=0.1,
        once=str(tmp_path / "asleep"),
        signals=(int(signal.SIGTERM), int(signal.SIGKILL)),
        apart=0.7,
    )
    (ending,) = nursery.run(call)
    assert ending.code == -signal.SIGKILL
    assert np.isfinite(ending.seconds)
