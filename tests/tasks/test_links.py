import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.datasets import epinions
from corrvae.graphs import split_edges
from corrvae.tasks import degree_scores, embedding_scores, ncrr, rank_links, rank_pairs, score_links
from support.graphs import graphs
from support.published import at_hand
from support.unchecked import unchecked

RING = CorrelationGraph.from_edges([(i, (i + k) % 24) for i in range(24) for k in (1, 2)])


@given(graphs(max_vertices=12), st.integers(0, 99))
def test_held_out_edges_are_ranked_and_known_ones_are_not(graph, seed):
    split = split_edges(graph, test=0.2, validation=0.2, random_state=seed)
    trained = {tuple(edge) for edge in split.train.edges.tolist()}
    for part, held in (("test", split.test), ("validation", split.validation)):
        found = rank_links(degree_scores(split.train), split, part)
        pairs = {tuple(sorted(pair)) for pair in zip(found.vertices.tolist(), found.others.tolist(), strict=True)}
        assert pairs == {tuple(edge) for edge in held.tolist()}
        assert not pairs & trained
        assert (found.candidates == graph.n_vertices - 1 - split.train.degrees[found.vertices]).all()


def test_held_out_edges_touch_nothing_in_training():
    """The model trained on a split is, to the bit, that of a world in which held-out edges never were."""
    split = split_edges(RING, test=0.2, validation=0.2, random_state=0)
    held = np.concatenate([split.test, split.validation])
    adjacency = split.train.to_scipy().toarray()
    assert not adjacency[held[:, 0], held[:, 1]].any()
    assert not adjacency[held[:, 1], held[:, 0]].any()
    never = CorrelationGraph.from_edges(split.train.edges.tolist(), n_vertices=24)
    features = np.random.default_rng(0).standard_normal((24, 6)).astype(np.float32)
    embeddings = [
        CorrelatedVAE(2, max_steps=5, random_state=0).fit(features, graph=graph).transform(features)
        for graph in (split.train, never)
    ]
    assert np.array_equal(*embeddings)
    with pytest.raises(ValueError, match="is an edge of known"):
        rank_pairs(embedding_scores(embeddings[0]), split.train.edges, 24, known=split.train)


def test_by_hand():
    places = np.array([[0.0], [1.0], [3.0], [4.0]])
    found = score_links(rank_pairs(embedding_scores(places), np.array([[0, 1], [0, 2]]), 4))
    assert found.ncrr == pytest.approx((1 + 1 + 1 / 3) / 3)
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 + 1 / 3) / 4)
    assert (found.hits_1, found.hits_10, found.hits_100, found.n_vertices) == (0.5, 1.0, 1.0, 3)
    # 0 beats the one unrelated with both, 1 beats both of two, 2 beats neither of two
    assert found.auc == pytest.approx((1 + 1 + 1 + 0) / 4)


def test_a_perfect_scorer_has_one_and_a_constant_one_half_of_the_area():
    split = split_edges(RING, test=0.2, random_state=0)
    adjacency = RING.to_scipy().toarray()
    best = score_links(
        rank_links(lambda rows: adjacency[rows] + 0.1 * np.random.default_rng(0).random((len(rows), 24)), split)
    )
    # validation edges are edges too, and may come before those of the test
    assert best.auc > 0.95
    whole = split_edges(RING, test=0.2, validation=0.0, random_state=0)
    exact = score_links(rank_links(lambda rows: adjacency[rows] + 1e-3 * np.arange(24), whole))
    assert (exact.ncrr, exact.auc) == (pytest.approx(1.0), 1.0)
    constant = score_links(rank_links(lambda rows: np.zeros((len(rows), 24)), whole))
    assert constant.auc == pytest.approx(0.5)
    assert constant.ncrr < 0.1


def test_other_parts_are_refused():
    with unchecked(), pytest.raises(ValueError, match='part must be "validation" or "test"'):
        rank_links(degree_scores(RING), split_edges(RING), "train")


def test_degree_on_the_published_epinions():
    graph = epinions(at_hand("epinions")).graph
    split = split_edges(graph, random_state=0)
    found = rank_links(degree_scores(split.train), split)
    assert score_links(found).n_vertices == 16_101
    assert ncrr(found.ranks, found.vertices) == pytest.approx(0.013, abs=0.001)
