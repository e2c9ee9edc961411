from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from corrvae.tasks.metrics import (
    adjusted_rand_index,
    area_under_curve,
    hits_at,
    ncrr,
    normalised_mutual_information,
    reciprocal_rank,
)
from support.unchecked import unchecked


def test_by_hand():
    ranks = np.array([1, 2, 4])
    assert reciprocal_rank(ranks) == pytest.approx(7 / 12)
    assert [hits_at(ranks, k) for k in (1, 2, 3, 4)] == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])
    assert ncrr(np.array([1, 4, 3]), np.array([7, 9, 7])) == pytest.approx(41 / 72)
    assert ncrr(np.array([1, 2, 3, 1]), np.array([0, 0, 0, 5])) == 1.0
    labels, found = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    information = np.log(4 / 3) / 2 + np.log(2 / 3) / 4 + np.log(2) / 4
    entropies = np.log(2), -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert normalised_mutual_information(labels, found) == pytest.approx(2 * information / sum(entropies))
    assert adjusted_rand_index(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 1, 1])) == pytest.approx(12 / 37)


def test_perfect_swapped_and_unrelated_groups():
    labels = np.array([0, 0, 1, 1])
    for metric in (normalised_mutual_information, adjusted_rand_index):
        assert metric(labels, 1 - labels) == pytest.approx(1.0)
    assert normalised_mutual_information(labels, np.array([0, 1, 0, 1])) == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=20))
def test_ncrr_is_that_of_its_definition(pairs):
    expected = []
    for vertex in {vertex for vertex, _ in pairs}:
        mine = [rank for other, rank in pairs if other == vertex]
        crr = sum(Fraction(1, rank) for rank in mine)
        expected.append(crr / sum(Fraction(1, k) for k in range(1, len(mine) + 1)))
    vertices, ranks = np.array(pairs).T
    assert ncrr(ranks, vertices) == pytest.approx(float(sum(expected) / len(expected)))


@given(st.integers(1, 4), st.integers(0, 2**16))
def test_auc_is_the_mean_of_mann_whitney(n_vertices, seed):
    generator = np.random.default_rng(seed)
    columns, expected = [], []
    for vertex in range(n_vertices):
        related = generator.integers(0, 5, generator.integers(1, 5))
        unrelated = generator.integers(0, 5, generator.integers(1, 6))
        candidates = np.concatenate([related, unrelated])
        for score in related:
            columns.append([(candidates >= score).sum(), (candidates > score).sum(), len(candidates), vertex])
            wins = mannwhitneyu([score], unrelated, method="asymptotic").statistic
            expected.append(wins / len(unrelated))
    generator.shuffle(columns)
    assert area_under_curve(*np.array(columns).T) == pytest.approx(np.mean(expected))


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="there are no ranks"):
        reciprocal_rank(np.empty(0, np.int64))
    with pytest.raises(ValueError, match="rank 1 is 0, but the best rank is 1"):
        hits_at(np.array([3, 0]), 1)
    with unchecked(), pytest.raises(ValueError, match="3 labels but 2 found"):
        normalised_mutual_information(np.array([0, 1, 1]), np.array([0, 1]))
    one = np.array([1])
    with pytest.raises(ValueError, match="every candidate is a held-out edge"):
        area_under_curve(one, one - 1, one, one)
