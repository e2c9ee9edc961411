import numpy as np
import pytest

from corrvae.datasets import tree
from corrvae.tasks import adjusted_rand_index, embedding_distances, normalised_mutual_information, score_clustering
from corrvae.tasks.spectral import cut, similarities


def test_two_groups_are_found():
    generator = np.random.default_rng(0)
    points = np.concatenate([generator.standard_normal((40, 2)), generator.standard_normal((40, 2)) + 6.0])
    found = score_clustering(embedding_distances(points), np.repeat([0, 1], 40))
    assert (found.nmi, found.ari, found.unit_nmi, found.unit_ari) == pytest.approx((1.0,) * 4)


def test_scores_are_those_of_the_two_cuts():
    data = tree(200, 3, n_components=5, random_state=0)
    distances = embedding_distances(data.latents)
    found = score_clustering(distances, data.labels)
    similar = similarities(distances, 200)
    for diagonal, scores in (("zero", (found.nmi, found.ari)), ("unit", (found.unit_nmi, found.unit_ari))):
        side = cut(similar, diagonal).side
        expected = normalised_mutual_information(data.labels, side), adjusted_rand_index(data.labels, side)
        assert scores == pytest.approx(expected)


def test_labels_without_a_pattern_are_not_found():
    generator = np.random.default_rng(0)
    found = score_clustering(embedding_distances(generator.random((400, 2))), generator.integers(0, 2, 400))
    assert found.nmi < 0.05
    assert abs(found.ari) < 0.05
