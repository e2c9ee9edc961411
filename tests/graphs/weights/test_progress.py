import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import corrvae
from corrvae.graphs.weights import progress as module
from corrvae.graphs.weights.progress import DONE, STOP, Cancelled, Monitor, watch


@pytest.fixture
def ctrl_c():
    """A shell that starts the tests in the background has them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def wait_until(condition) -> None:
    while not condition():
        time.sleep(0.005)


def test_the_result_comes_back_from_another_thread():
    where = watch(lambda monitor: threading.current_thread())
    assert where is not threading.current_thread()
    assert watch(lambda monitor: None) is None


def test_an_error_is_passed_on():
    def fail(monitor):
        raise LookupError("nothing here")

    with pytest.raises(LookupError, match="nothing here") as caught:
        watch(fail)
    assert any(entry.name == "fail" for entry in caught.traceback)


def test_phases_start_counting_from_zero():
    monitor = Monitor()
    assert monitor.control.tolist() == [0, 0]
    monitor.phase("counting", 10)
    monitor.control[DONE] = 7
    assert (monitor.label, monitor.total) == ("counting", 10)
    monitor.phase("looking")
    assert (monitor.label, monitor.total, monitor.control[DONE]) == ("looking", None, 0)


def test_a_stop_is_noticed_at_the_next_check():
    monitor = Monitor()
    monitor.check()
    monitor.control[STOP] = 1
    with pytest.raises(Cancelled):
        monitor.check()
    with pytest.raises(Cancelled):
        monitor.phase("more")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_ctrl_c_stops_the_work(delay):
    stopped = threading.Event()

    def work(monitor):
        time.sleep(delay)  # without one, the thread is still being started
        _thread.interrupt_main()
        wait_until(lambda: monitor.control[STOP])
        stopped.set()
        monitor.check()

    with pytest.raises(KeyboardInterrupt):
        watch(work)
    assert stopped.wait(60)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_does_not_wait_for_work_that_does_not_stop():
    enough, finished = threading.Event(), threading.Event()

    def deaf(monitor):
        _thread.interrupt_main()
        enough.wait(60)
        finished.set()

    with pytest.raises(KeyboardInterrupt):
        watch(deaf)
    assert not finished.is_set()
    enough.set()


@pytest.fixture
def screen(monkeypatch, capfd):
    """A terminal on which progress shows at once; returns what was written to it."""
    monkeypatch.setattr(module, "_SHOW_AFTER_SECONDS", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return lambda: capfd.readouterr().err


@pytest.fixture
def updates(monkeypatch):
    """The updates of a progress bar."""
    seen, make = [], module._progress_bar

    def counted(monitor, stack):
        update = make(monitor, stack)

        def look() -> None:
            update()
            seen.append(monitor.label)

        return look

    monkeypatch.setattr(module, "_progress_bar", counted)
    return seen


def test_progress_shows_each_phase(screen, updates):
    def work(monitor):
        for label, total, count in (("counting sheep", 8, 2), ("shearing", None, 5)):
            monitor.phase(label, total)
            monitor.control[DONE] = count
            seen = len(updates)
            wait_until(lambda seen=seen: len(updates) > seen + 5)
        return "wool"

    assert watch(work, progress=True) == "wool"
    written = screen()
    assert "counting sheep" in written
    assert "25%" in written
    assert "shearing" in written
    assert written.index("counting sheep") < written.index("shearing")


@pytest.mark.parametrize(("progress", "after"), [(None, 0.0), (False, 0.0), (True, 1e9)])
def test_no_progress_off_the_terminal_when_turned_off_or_for_quick_work(progress, after, screen, updates, monkeypatch):
    monkeypatch.setattr(module, "_SHOW_AFTER_SECONDS", after)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    watch(lambda monitor: time.sleep(0.2), progress=progress)
    assert screen() == ""
    assert updates == []


LONG_WORK = """
import signal
import numpy as np
from corrvae.graphs import CorrelationGraph, spanning_weights

signal.signal(signal.SIGINT, signal.default_int_handler)

def cycle(n):
    return CorrelationGraph.from_edges(np.column_stack([np.arange(n), (np.arange(n) + 1) % n]))

spanning_weights(cycle(10), method="sample")  # compiles
print("ready", flush=True)
spanning_weights(cycle(200_000), method="sample", epsilon=0.002)
print("finished", flush=True)
"""


def test_ctrl_c_ends_a_long_computation():
    environment = {**os.environ, "PYTHONPATH": str(Path(corrvae.__file__).parent.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", LONG_WORK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)  # into the walks
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
    assert "finished" not in out
    assert "KeyboardInterrupt" in err
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
