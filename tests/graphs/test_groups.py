"""Groups: vertices that join their members, and stay marked wherever the graph goes."""

import copy
import pickle

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae.graphs import CorrelationGraph
from support.unchecked import unchecked

MEMBERS = st.lists(st.integers(0, 9), unique=True, max_size=6)
HOUSES = {"h1": ["ann", "bob", "cem"], "h2": ["dee"]}


@given(
    st.dictionaries(st.sampled_from(["red", "blue", "green"]), MEMBERS), st.sets(st.tuples(*[st.integers(0, 9)] * 2))
)
def test_members_are_joined_to_their_groups_and_to_nobody_else(groups, pairs):
    pairs = {(i, j) for i, j in pairs if i < j}
    graph = CorrelationGraph.from_groups(groups, edges=list(pairs))
    expected = networkx.Graph([*pairs, *((name, member) for name, members in groups.items() for member in members)])
    expected.add_nodes_from(groups)
    found = graph.to_networkx()
    assert set(found) == set(expected)
    assert {frozenset(edge) for edge in found.edges} == {frozenset(edge) for edge in expected.edges}
    assert set(graph.ids[graph.is_group].tolist()) == set(groups)
    assert graph.has_groups == bool(groups)
    first = len(graph) - len(groups)
    assert graph.is_group.tolist() == [False] * first + [True] * len(groups)


def test_marks_go_where_the_graph_goes():
    graph = CorrelationGraph.from_groups(HOUSES, edges=[("ann", "dee")])
    assert repr(graph) == "CorrelationGraph(6 vertices, 5 edges, 2 groups)"
    part = graph.subgraph(["h1", "ann", "dee"])
    assert part.is_group.tolist() == [True, False, False]
    assert part.id_pairs.tolist() == [["h1", "ann"], ["ann", "dee"]]
    assert graph.without([("ann", "dee")]).is_group.tolist() == graph.is_group.tolist()
    assert not graph.subgraph(["ann", "dee"]).has_groups
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert again == graph
        assert again.is_group.tolist() == graph.is_group.tolist()
    unmarked = CorrelationGraph(graph.edges, 6, vertices=graph.ids)
    assert unmarked != graph
    assert CorrelationGraph(graph.edges, 6, vertices=graph.ids, is_group=graph.is_group) == graph
    assert not graph.is_group.flags.writeable
    with pytest.raises(ValueError, match="is_group must have an entry for each of the 6 vertices"):
        CorrelationGraph(graph.edges, 6, is_group=[True])


def test_edges_may_have_conductances_and_groups_of_their_own():
    friends = CorrelationGraph.from_edges([("ann", "bob"), ("bob", "eve")], conductances=[2.0, 3.0])
    graph = CorrelationGraph.from_groups(HOUSES, edges=friends, vertices=["eve", "dee", "cem", "bob", "ann"])
    assert graph.ids.tolist() == ["eve", "dee", "cem", "bob", "ann", "h1", "h2"]
    found = dict(zip(map(frozenset, graph.id_pairs.tolist()), graph.conductances.tolist(), strict=True))
    assert found[frozenset(["bob", "eve"])] == 3.0
    assert found[frozenset(["bob", "h1"])] == 1.0
    towns = CorrelationGraph.from_groups({"town": ["h1", "h2", "zoe"]}, edges=graph)
    assert set(towns.ids[towns.is_group].tolist()) == {"h1", "h2", "town"}
    assert set(towns.neighbors("town").tolist()) == {"h1", "h2", "zoe"}
    assert towns.ids.tolist() == [*graph.ids.tolist(), "zoe", "town"]


def test_groups_within_groups():
    graph = CorrelationGraph.from_groups({"team": ["ann", "bob"], "firm": ["team", "cem"]})
    assert graph.ids.tolist() == ["ann", "bob", "cem", "team", "firm"]
    assert graph.is_group.tolist() == [False] * 3 + [True] * 2


def test_members_may_be_arrays():
    graph = CorrelationGraph.from_groups({"a": np.array([3, 5]), "b": (5, 9)})
    assert graph.ids.tolist() == [3, 5, 9, "a", "b"]
    assert graph.n_connected == 1


def test_what_is_no_group_is_one_sentence():
    with pytest.raises(ValueError, match="'ann' is the id of a group and of a point"):
        CorrelationGraph.from_groups({"ann": ["bob"]}, edges=[("ann", "cem")])
    with pytest.raises(TypeError, match="group 'h' must be a list of members, not 'ann'"):
        CorrelationGraph.from_groups({"h": "ann"})
    with unchecked(), pytest.raises(TypeError, match="groups must be a mapping"):
        CorrelationGraph.from_groups([("h", "ann")])
    with pytest.raises(ValueError, match="'zoe' is not among the"):
        CorrelationGraph.from_groups({"h": ["zoe"]}, vertices=["ann"])
