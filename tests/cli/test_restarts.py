import os

import pytest

from corrvae.cli.restarts import is_restart, launch_name


@pytest.mark.parametrize(("name", "count", "again"), [("job", "0", False), ("job", "2", True), ("none", "1", True)])
def test_the_launcher_says_that_it_starts_again(monkeypatch, name, count, again):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", name)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
    assert is_restart() == again


def test_a_launch_has_a_name(monkeypatch):
    assert launch_name() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job 7")
    name = launch_name()
    assert name.startswith("job 7 ")
    assert launch_name() == name
    monkeypatch.setattr(os, "getppid", lambda: 7)  # another launcher, given the same name
    assert launch_name() != name


def test_a_program_by_itself_is_never_started_again(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "3")  # left over in somebody's shell
    assert not is_restart()
