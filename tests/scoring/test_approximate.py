import numpy as np
import pytest

from corrvae.scoring import approximate
from corrvae.scoring.approximate import nearest_approximately
from corrvae.scoring.metrics import make_metric
from corrvae.scoring.neighbors import nearest
from corrvae.scoring.points import Exclusions
from support.literal_scores import NAMES, is_excluded, random_exclusions, random_points

TAU = np.full(6, 0.9)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_exact_and_the_recall_is_what_was_found(monkeypatch, name):
    monkeypatch.setattr(approximate, "_QUERIES", 64)
    points, metric = random_points(400, 6, 0, repeats=0.1), make_metric(name, TAU)
    exclusions = random_exclusions(400, 400, 0.02, 1)
    result = nearest_approximately(points, points, metric, 5, exclusions)
    found, truth = result.found, nearest(points, points, metric, 5, exclusions)
    pairs = np.stack([np.repeat(np.arange(400), 5), found.positions.ravel()], axis=1)
    np.testing.assert_array_equal(found.scores.ravel(), metric.parts(points, points, pairs).score)
    assert not is_excluded(exclusions, 400)[pairs[:, 0], pairs[:, 1]].any()
    assert (np.diff(metric.sign * found.scores, axis=1) >= 0).all()
    share = np.mean([len(np.intersect1d(f, t)) / 5 for f, t in zip(found.positions, truth.positions, strict=True)])
    assert result.recall == pytest.approx(share, abs=0.05)
    assert result.recall > (0.5 if name == "log_odds" else 0.95)


def test_what_is_not_there_is_not_found():
    points, metric = random_points(6, 6, 0), make_metric("cosine", TAU)
    exclusions = random_exclusions(6, 6, 0.5, 3)
    result = nearest_approximately(points, points, metric, 6, exclusions)
    truth = nearest(points, points, metric, 6, exclusions)
    np.testing.assert_array_equal(result.found.positions, truth.positions)
    np.testing.assert_allclose(result.found.scores, truth.scores)
    assert result.recall == 1.0


def test_without_the_package_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(approximate, "import_module", missing)
    points = random_points(3, 6, 0)
    nobody = Exclusions.of(3, np.empty(0, np.int64), np.empty(0, np.int64))
    with pytest.raises(ImportError, match=r"corrvae\[index\]"):
        nearest_approximately(points, points, make_metric("cosine", TAU), 1, nobody)
