"""The features that points most probably have, against closed forms of linear decoders."""

import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae.model import Posterior, build_model
from corrvae.model.families import Independent
from corrvae.nn import Scaling
from corrvae.scoring import RankedFeatures, alike_features, features, top_features

RNG = np.random.default_rng(0)
MEAN, STDDEV = RNG.normal(size=(5, 3)).astype(np.float32), RNG.uniform(0.2, 0.9, (5, 3)).astype(np.float32)
POINTS = Posterior(MEAN, STDDEV)


def linear(likelihood, n_features=7):
    """A model whose decoder is linear, and its weights."""
    model = build_model(n_features, 3, family=Independent(), likelihood=likelihood, hidden=(), seed=1)
    layer = model.decoder.layers[-1]
    with torch.no_grad():
        layer.bias.copy_(torch.linspace(-1, 1, n_features))
    return model, layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()


def check(found, expected, k, rtol):
    positions, scores = found
    np.testing.assert_allclose(np.take_along_axis(expected, positions, 1), scores, rtol=rtol)
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], rtol=rtol)


def test_expected_rates_have_a_closed_form():
    model, W, b = linear("poisson")
    expected = np.exp(MEAN @ W.T + b + 0.5 * STDDEV**2 @ W.T**2)
    check(top_features(model, POINTS, 7, n_samples=20_000), expected, 7, 0.02)
    check(top_features(model, POINTS, 3, n_samples=0), np.exp(MEAN @ W.T + b), 3, 1e-5)


def test_standardised_columns_are_compared_in_their_own_units():
    model, W, b = linear("gaussian")
    scaling = Scaling(location=np.linspace(5, -5, 7), scale=np.linspace(1, 9, 7))
    expected = (MEAN @ W.T + b) * scaling.scale + scaling.location  # noise of both signs cancels
    check(top_features(model, POINTS, 4, scaling=scaling, n_samples=4), expected, 4, 1e-4)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_what_is_there_and_what_is_not_asked_for_is_left_out(make):
    model, _, _ = linear("bernoulli")
    had = np.zeros((5, 7), np.float32)
    had[0, [2, 3]], had[1, :], had[2, 5], had[3, 0] = 1.0, 4.0, np.nan, 2.0
    among = np.array([0, 3, 5, 2])
    positions, scores = top_features(model, POINTS, 9, seen=lambda rows: make(had)[rows], among=among, n_samples=64)
    assert [set(row) - {-1} for row in positions.tolist()] == [{0, 5}, set(), {0, 2, 3, 5}, {2, 3, 5}, {0, 2, 3, 5}]
    assert (np.isnan(scores) == (positions < 0)).all()
    assert ((scores > 0) & (scores < 1))[positions >= 0].all()
    every, values = top_features(model, POINTS, 7, n_samples=64)
    for row in range(5):
        known = dict(zip(every[row].tolist(), values[row].tolist(), strict=True))
        assert [known[place] for place in positions[row].tolist() if place >= 0] == pytest.approx(
            scores[row][positions[row] >= 0].tolist(), rel=1e-6
        )


def test_what_is_found_depends_neither_on_blocks_nor_on_others(monkeypatch):
    model, _, _ = linear("multinomial")
    whole = top_features(model, POINTS, 4)
    alone = top_features(model, POINTS.take(np.array([3])), 4)
    monkeypatch.setattr(features, "_CELLS", 14)
    pieces = top_features(model, POINTS, 4)
    for found in (pieces, [np.insert(whole[k], 3, alone[k][0], axis=0)[[0, 1, 2, 3, 5]] for k in (0, 1)]):
        np.testing.assert_array_equal(found[0], whole[0])
        np.testing.assert_allclose(found[1], whole[1], rtol=1e-5)
    assert not np.array_equal(top_features(model, POINTS, 4, random_state=1)[1], whole[1])


def test_alike_features_rise_and_fall_together(monkeypatch):
    model, W, _ = linear("poisson")
    rng = np.random.default_rng(2)
    points = Posterior(rng.normal(size=(3000, 3)) * [1, 2, 0.5], np.full((3000, 3), 0.6))
    covariance = np.diag([1.0, 4.0, 0.25]) + 0.36 * np.eye(3)
    product = W @ covariance @ W.T
    expected = product / np.sqrt(np.outer(np.diag(product), np.diag(product)))
    np.fill_diagonal(expected, -np.inf)
    positions, scores = alike_features(model, points, np.array([6, 0]), 9)
    assert positions.shape == (2, 6)
    assert [set(row) for row in positions.tolist()] == [set(range(6)), set(range(1, 7))]
    np.testing.assert_allclose(scores, np.take_along_axis(expected[[6, 0]], positions, 1), atol=0.08)
    assert (np.diff(scores, axis=1) <= 0).all()
    monkeypatch.setattr(features, "_POINTS", 2)
    with torch.no_grad():
        model.decoder.layers[-1].weight[4] = 3 * model.decoder.layers[-1].weight[1]
    near, likeness = alike_features(model, points, np.array([4]), 6)
    assert likeness[0, near[0] == 1] == pytest.approx([1.0])


def test_results_have_names():
    found = RankedFeatures.of(
        np.array(["ann", "bob"], dtype=object),
        np.array(["tea", "milk", "oats"], dtype=object),
        np.array([[2, 0, -1], [1, -1, -1]]),
        np.array([[0.5, 0.25, np.nan], [1.0, np.nan, np.nan]]),
    )
    ids, scores = found
    assert ids.tolist() == [["oats", "tea"], ["milk", None]]
    assert scores.shape == (2, 2)
    assert found.first().ids.tolist() == ["oats", "tea"]
    assert repr(found) == "RankedFeatures(2 queries, 2 each)"
    assert repr(found.first()) == "RankedFeatures(1 query, 2 each)"
    assert found.to_table().to_pylist() == [
        {"query": "ann", "rank": 1, "feature": "oats", "score": 0.5},
        {"query": "ann", "rank": 2, "feature": "tea", "score": 0.25},
        {"query": "bob", "rank": 1, "feature": "milk", "score": 1.0},
    ]
    assert found.first().to_table().num_rows == 2
