"""Groups on the command line."""

import numpy as np
import pytest

from corrvae import load
from support.commands import failure, rows, run
from support.runs import write_rows

QUICK = ("--n-components", 2, "--hidden", 8, "--max-steps", 20, "--random-state", 0, "--quiet")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    X = np.random.default_rng(0).normal(size=(12, 4))
    write_rows(folder / "people.csv", [("id", *"abcd"), *([k + 1, *row] for k, row in enumerate(X.round(3).tolist()))])
    write_rows(folder / "homes.csv", [("id", "household"), *((k + 1, k // 3 + 1) for k in range(12))])
    write_rows(folder / "friends.csv", [("source", "target"), (1, 4), (7, 10)])
    return folder


def test_groups_are_trained_with_and_asked_about(files):
    done = run(
        "fit", files / "people.csv", "--groups", files / "homes.csv", "--family", "joint", "--out", files / "r", *QUICK
    )
    assert done.exit_code == 0, done.output
    model = load(files / "r")
    homes = [f"household {k}" for k in range(1, 5)]
    assert model.ids_.tolist() == [*range(1, 13), *homes]
    assert model.graph_.ids[model.graph_.is_group].tolist() == homes
    assert [row["id"] for row in rows("embed", files / "r")] == [*map(str, range(1, 13)), *homes]
    found = rows("neighbors", files / "r", "-k", 2, "--ids", "household 2,5")
    assert [row["query"] for row in found] == ["household 2", "household 2", "5", "5"]
    assert not {row["neighbor"] for row in found} & set(homes)
    listed = rows("links", files / "r", "--top", 66)
    assert not {row[end] for row in listed for end in ("source", "target")} & set(homes)
    assert {row["id"] for row in rows("cluster", files / "r", "--method", "kmeans")} == set(map(str, range(1, 13)))


def test_groups_go_together_with_edges(files):
    options = ("--groups", files / "homes.csv", "--family", "joint", "--out", files / "both", *QUICK)
    done = run("fit", files / "people.csv", files / "friends.csv", *options)
    assert done.exit_code == 0, done.output
    graph = load(files / "both").graph_
    assert graph.n_edges == 14
    assert set(graph.neighbors(4).tolist()) == {1, "household 2"}


def test_other_families_have_no_place_for_groups(files):
    words = "groups are vertices without features, which only --family joint keeps"
    assert words in failure(
        "fit", files / "people.csv", "--groups", files / "homes.csv", "--out", files / "no", "--quiet"
    )
