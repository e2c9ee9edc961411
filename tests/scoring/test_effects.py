"""Balance and effects against literal formulas, SciPy and simulation."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from corrvae.io import Features
from corrvae.model.posterior import Posterior
from corrvae.scoring import match


def sides(left, right, ids=None):
    """Points 0, 1, ... at given places: the left ones, then the right ones."""
    mean = np.concatenate([left, right]).reshape(len(left) + len(right), -1)
    points = Posterior(mean, np.full_like(mean, 0.5), ids=ids)
    return points, points.ids[: len(left)], points.ids[len(left) :]


def draw(seed, n_left=12, n_right=20, dim=2):
    rng = np.random.default_rng(seed)
    return rng.normal(0.3, 1.0, size=(n_left, dim)), rng.normal(size=(n_right, dim)), rng


# Balance


def literal_balance(left, right, left_weights, right_weights):
    """Standardised difference and ratio of variances of one covariate, by its definition."""

    def moments(values, weights):
        mean = np.average(values, weights=weights)
        return mean, np.cov(values, aweights=weights)

    (mean, variance), (other, other_variance) = moments(left, left_weights), moments(right, right_weights)
    return (mean - other) / left.std(ddof=1), variance / other_variance


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("form", ["frame", "array", "sparse", "features"])
def test_balance_against_its_definition(form, replace):
    left, right, rng = draw(0)
    ids = np.array([f"p{k}" for k in rng.permutation(32)], dtype=object)
    points, a, b = sides(left, right, ids)
    X = rng.poisson(1.0, size=(32, 3)) + np.repeat([[1.0], [0.0]], [12, 20], axis=0)
    found = match(points, a, b, "mean_distance", ratio=2, replace=replace, caliper=0.5)
    order = rng.permutation(32)
    given_X = {
        "frame": pd.DataFrame(X, index=ids, columns=["x", "y", "z"]).iloc[order],
        "array": X,
        "sparse": sparse.csr_matrix(X),
        "features": Features(X[order], ids[order], ["x", "y", "z"]),
    }[form]
    balance = found.balance(given_X)
    weights = np.array([found.weights[name] for name in ids])
    assert 0 < (weights[:12] == 0).sum() < 12
    assert weights[:12].sum() == pytest.approx(weights[12:].sum())
    for k in range(3):
        one, other = X[:12, k], X[12:, k]
        before = literal_balance(one, other, np.ones(12), np.ones(20))
        after = literal_balance(one, other, weights[:12], weights[12:])
        assert (balance.before[k], balance.ratio_before[k]) == pytest.approx(before)
        assert (balance.after[k], balance.ratio_after[k]) == pytest.approx(after)
    effective = weights[12:].sum() ** 2 / (weights[12:] ** 2).sum()
    assert (balance.n_left, balance.n_right) == ((weights[:12] > 0).sum(), (weights[12:] > 0).sum())
    assert (balance.effective_left, balance.effective_right) == pytest.approx((balance.n_left, effective))
    assert balance.names == (list("xyz") if form in ("frame", "features") else ["0", "1", "2"])
    assert balance.to_table().column_names == ["covariate", "before", "after", "ratio_before", "ratio_after"]
    assert repr(balance).startswith("Balance(3 covariates, largest difference ")


def test_balance_of_columns_that_are_constant():
    points, a, b = sides(np.array([0.0, 1.0, 2.0]), np.array([0.1, 1.1, 2.1]))
    X = np.array([[1, 1], [1, 1], [1, 1], [1, 1], [1, 3], [1, 5]])
    balance = match(points, a, b, "mean_distance").balance(X)
    assert balance.before == pytest.approx([0, -2 / X[:, 1].std(ddof=1)])
    assert np.isnan(balance.ratio_before[0])
    with pytest.raises(ValueError, match="X must hold numbers; encode words"):
        match(points, a, b, "mean_distance").balance([["x"], ["y"], ["x"], ["y"], ["x"], ["y"]])


# Effects


def literal_effect(left, right, pairs, places):
    """Estimate and standard error as Abadie and Imbens (2006) write them, with three neighbours for the variances."""
    partners = {i: [j for k, j in pairs if k == i] for i in {i for i, _ in pairs}}
    differences = {i: left[i] - np.mean([right[j] for j in own]) for i, own in partners.items()}
    n, estimate = len(partners), np.mean(list(differences.values()))
    total = sum((d - estimate) ** 2 for d in differences.values()) * n / (n - 1)
    for j in range(len(right)):
        uses = [1 / len(own) for own in partners.values() if j in own]
        distance = ((places - places[j]) ** 2).sum(axis=1)
        near = [k for k in np.argsort(distance, kind="stable") if k != j][:3]
        noise = len(near) / (len(near) + 1) * (right[j] - np.mean(right[near])) ** 2 if near else 0.0
        total += (sum(uses) ** 2 - sum(use**2 for use in uses)) * noise
    return estimate, np.sqrt(total) / n


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.booleans(), st.sampled_from([None, 1.0]), st.integers(2, 12), st.integers(0, 10**6))
def test_an_effect_against_its_formula(ratio, replace, caliper, n_right, seed):
    left, right, rng = draw(seed, n_right=n_right)
    points, a, b = sides(left, right)
    outcome = rng.normal(size=len(points))
    found = match(points, a, b, "mean_distance", ratio=ratio, replace=replace, caliper=caliper)
    pairs = [(i, j - 12) for i, j in found.id_pairs.tolist()]
    if len({i for i, _ in pairs}) < 2:
        return
    effect = found.effect(outcome)
    estimate, error = literal_effect(outcome[:12], outcome[12:], pairs, right)
    assert (effect.estimate, effect.standard_error) == pytest.approx((estimate, error))
    assert (effect.n_left, effect.n_right) == (len({i for i, _ in pairs}), len({j for _, j in pairs}))
    assert effect.n_unmatched == 12 - effect.n_left
    width = stats.t(effect.n_left - 1).ppf(0.95) * error
    assert found.effect(outcome, level=0.9).interval == pytest.approx((estimate - width, estimate + width))


def test_pairs_without_replacement_are_a_paired_t_test():
    left, right, rng = draw(1)
    points, a, b = sides(left, right)
    outcome = pd.Series(rng.normal(size=32), index=points.ids).sample(frac=1.0, random_state=0)
    found = match(points, a, b, "mean_distance")
    test = stats.ttest_rel(outcome[found.id_pairs[:, 0]], outcome[found.id_pairs[:, 1]])
    effect = found.effect(outcome)
    assert effect.estimate / effect.standard_error == pytest.approx(test.statistic)
    assert effect.interval == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert repr(effect).endswith("12 of 12 left points)")


@pytest.mark.parametrize("replace", [False, True])
def test_bias_correction_against_weighted_least_squares(replace):
    left, right, rng = draw(2)
    points, a, b = sides(left, right)
    outcome, other = rng.normal(size=32), rng.normal(size=(32, 1))
    found = match(points, a, b, "mean_distance", ratio=2, replace=replace)
    for covariates, Z in (("embedding", points.mean), (sparse.csr_array(other), other)):
        weights = np.array([found.weights[j] for j in b])
        design = np.column_stack([np.ones(32), Z])
        normal = (design[12:].T * weights) @ design[12:]
        residual = outcome - design @ np.linalg.solve(normal, (design[12:].T * weights) @ outcome[12:])
        effect, plain = found.effect(outcome, covariates=covariates), found.effect(residual)
        assert (effect.estimate, effect.standard_error) == pytest.approx((plain.estimate, plain.standard_error))
        assert effect.n_adjusted == Z.shape[1]


def test_bias_correction_removes_a_linear_difference():
    left, right, _ = draw(3, dim=1)
    points, a, b = sides(left + 2.0, right)
    outcome = 3.0 * points.mean[:, 0] + np.repeat([5.0, 0.0], [12, 20])
    found = match(points, a, b, "mean_distance")
    assert found.effect(outcome).estimate > 6.0
    assert found.effect(outcome, covariates="embedding").estimate == pytest.approx(5.0)


@pytest.mark.parametrize(("replace", "ratio"), [(False, 1), (True, 2)])
def test_intervals_cover_the_truth(replace, ratio):
    rng = np.random.default_rng(0)
    n_covered, n_runs = 0, 100
    for _ in range(n_runs):
        left, right = rng.normal(0.5, 1.0, size=60), rng.normal(size=240)
        points, a, b = sides(left, right)
        # effects differ between points, and are 1 on average; so does the noise
        outcome = np.sin(points.mean[:, 0]) + rng.normal(size=300) * (1.0 + 0.5 * np.abs(points.mean[:, 0]))
        outcome[:60] += 1.0 + 0.5 * rng.normal(size=60)
        low, high = match(points, a, b, "mean_distance", replace=replace, ratio=ratio).effect(outcome).interval
        n_covered += low <= 1.0 <= high
    assert 0.88 <= n_covered / n_runs <= 0.99


def test_points_alone_of_their_kind_can_be_used_twice():
    points, a, b = sides(np.array([0.0, 0.1, 5.0, 5.1]), np.array([0.0, 5.0]))
    found = match(points, a, b, "mean_distance", replace=True, exact_on=[0, 0, 1, 1, 0, 1])
    effect = found.effect([1.0, 2.0, 3.0, 4.0, 0.0, 2.0])
    differences, noise = np.array([1.0, 2.0, 1.0, 2.0]), np.var([0.0, 2.0], ddof=1)
    error = np.sqrt(differences.var(ddof=1) * 4 + 2 * (2**2 - 2) * noise) / 4
    assert (effect.estimate, effect.standard_error) == pytest.approx((1.5, error))


def test_what_an_effect_needs():
    left, right, rng = draw(4)
    points, a, b = sides(left, right)
    found, outcome = match(points, a, b, "mean_distance"), rng.normal(size=32)
    outcome[np.setdiff1d(b, found.id_pairs[:, 1])] = np.nan  # nobody looks at these
    assert np.isfinite(found.effect(outcome).standard_error)
    outcome[3] = np.nan
    with pytest.raises(ValueError, match="outcome of id 3 is not a finite number"):
        found.effect(outcome)
    with pytest.raises(ValueError, match="outcome must have one value for each point, not 2"):
        found.effect(np.ones((32, 2)))
    with pytest.raises(ValueError, match="15 covariates are too many for 12 right points"):
        found.effect(np.ones(32), covariates=np.ones((32, 15)))
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        found.effect(np.ones(32), level=95)
    with pytest.raises(ValueError, match="no point has a partner"):
        match(points, a, b, "mean_distance", caliper=0.0).effect(np.ones(32))
