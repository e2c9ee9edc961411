from types import SimpleNamespace

import psutil
import pytest

from corrvae.graphs.weights import memory


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Set what the machine has free and what its container allows."""

    def arrange(free: int, limit: str | None = None, used: str = "0") -> None:
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
        monkeypatch.setattr(memory, "_CGROUP", tmp_path)
        if limit is not None:
            (tmp_path / "memory.max").write_text(limit + "\n")
            (tmp_path / "memory.current").write_text(used + "\n")

    return arrange


@pytest.mark.parametrize(
    ("arrangement", "budget"),
    [
        ((1000,), 500),
        ((1000, "max"), 500),
        ((1000, "600", "200"), 200),
        ((1000, "5000", "200"), 500),
        ((1000, "600", "700"), 0),
    ],
    ids=["no container", "container without limit", "container", "wide container", "full container"],
)
def test_half_of_what_is_free(machine, arrangement, budget):
    machine(*arrangement)
    assert memory.default_budget() == budget


def test_half_of_this_machine():
    assert 0 < memory.default_budget() <= psutil.virtual_memory().total / 2


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1500, "1.5 kB"), (1.4e6, "1.4 MB"), (999e6, "999 MB"), (1e9, "1.0 GB"), (46.04e9, "46 GB")],
)
def test_sizes_in_words(size, words):
    assert memory.in_words(size) == words
