import os
from pathlib import Path

import pytest

from corrvae.cli import restarts
from corrvae.cli.restarts import launch_name


def test_a_launch_has_a_name(monkeypatch):
    assert launch_name() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job 7")
    name = launch_name()
    assert name.startswith("job 7 ")
    assert launch_name() == name
    monkeypatch.setattr(os, "getppid", lambda: 1)  # another launcher, given the same name
    assert launch_name() != name


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell when a process began")
def test_a_launcher_of_the_same_number_is_another_one(monkeypatch):
    """As in a container, where the first process has the number 1 every time."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "fit")
    monkeypatch.setattr(os, "getppid", lambda: 1)
    first, begun = launch_name(), restarts._begin_of(os.getpid())
    monkeypatch.setattr(restarts, "_begin_of", lambda process: begun)
    assert "unknown" not in first
    assert launch_name() != first


def test_a_system_that_does_not_tell_is_no_obstacle():
    assert restarts._begin_of(2**31) == "unknown"
