import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae import CorrelationGraph
from corrvae.tasks import ranks as module
from corrvae.tasks.ranks import rank_pairs
from support.graphs import graphs


@given(graphs(max_vertices=10), st.integers(0, 2**16), st.sampled_from([1, 30, 1 << 20]))
def test_ranks_are_those_of_the_whole_matrix(graph, seed, block):
    generator = np.random.default_rng(seed)
    count = graph.n_vertices
    scores = generator.integers(0, 4, (count, count))  # integers, with many ties
    pairs = np.array([(i, j) for i in range(count) for j in range(i)], dtype=np.int64).reshape(-1, 2)
    known = graph.to_scipy().toarray() > 0
    pairs = pairs[~known[pairs[:, 0], pairs[:, 1]]]
    asked = []

    def some(rows):
        asked.append(len(rows))
        return scores[rows]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", block)
        found = rank_pairs(some, pairs, count, known=graph)
    assert max(asked, default=0) <= max(1, block // max(count, 1))
    both = sorted([(i, j) for i, j in pairs.tolist()] + [(j, i) for i, j in pairs.tolist()])
    assert list(zip(found.vertices.tolist(), found.others.tolist(), strict=True)) == both
    for k, (i, j) in enumerate(both):
        candidates = [c for c in range(count) if c != i and not known[i, c]]
        assert found.ranks[k] == sum(scores[i, c] >= scores[i, j] for c in candidates)
        assert found.above[k] == sum(scores[i, c] > scores[i, j] for c in candidates)
        assert found.candidates[k] == len(candidates)


def test_what_was_trained_on_cannot_be_ranked():
    known = CorrelationGraph.from_edges([(0, 1)], n_vertices=3)
    with pytest.raises(ValueError, match=r"pair 1, \(1, 0\), is an edge of known"):
        rank_pairs(lambda rows: np.zeros((len(rows), 3)), np.array([[0, 2], [1, 0]]), 3, known=known)


@pytest.mark.parametrize("pair", [[0, 3], [-1, 0], [1, 1]])
def test_pairs_that_are_none_are_refused(pair):
    with pytest.raises(ValueError, match="pairs are of two different vertices from 0 to 2"):
        rank_pairs(lambda rows: np.zeros((len(rows), 3)), np.array([pair]), 3)


def test_scores_that_are_none_are_refused():
    pairs = np.array([[0, 1]])
    with pytest.raises(ValueError, match=r"shape \(2, 2\) where \(2, 3\)"):
        rank_pairs(lambda rows: np.zeros((len(rows), 2)), pairs, 3)
    with pytest.raises(ValueError, match="the score of vertices 0 and 2 is not a number"):
        rank_pairs(lambda rows: np.where(np.arange(3) == 2, np.nan, 0.0) * np.ones((len(rows), 1)), pairs, 3)
    with pytest.raises(ValueError, match="known has 2 vertices where there are 3"):
        rank_pairs(lambda rows: np.zeros((len(rows), 3)), pairs, 3, known=CorrelationGraph.from_edges([(0, 1)]))
