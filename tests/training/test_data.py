import numpy as np
import pytest
from scipy import sparse

from corrvae.nn import DenseRows, FeatureTable, SparseRows
from corrvae.training import TrainingData
from support.training import D, N, small_data, small_matrix
from support.unchecked import unchecked


def test_the_population_of_a_graph():
    assert vars(small_data().population) == {"n_vertices": N, "n_edges": N, "total_weight": pytest.approx(0.75 * N)}
    assert small_data(weights=None).population.total_weight == N
    assert small_data(total_weight=7.0).population.total_weight == 7.0
    assert small_data(edges=None, weights=None).population.n_edges == 0


def test_edges_and_weights_must_fit_the_rows():
    table = FeatureTable(small_matrix())
    with pytest.raises(ValueError, match=rf"edge 1 is \(3, {N}\).*rows 0 to {N - 1}"):
        TrainingData(table, np.array([[0, 1], [3, N]]))
    with pytest.raises(ValueError, match="edge 0"):
        TrainingData(table, np.array([[-1, 1]]))
    with unchecked(), pytest.raises(ValueError, match="3 weights for 1 edges"):
        TrainingData(table, np.array([[0, 1]]), np.ones(3))
    with unchecked(), pytest.raises(ValueError, match=f"2 sample weights for {N} rows"):
        TrainingData(table, sample_weights=np.ones(2))


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("limit", [-1.0, 1.0])
def test_features_drawn_anew_take_the_tables_place(as_sparse, limit):
    def redraw(rows, generator):
        features = 100.0 * rows[:, None] + generator.random((len(rows), D))
        return sparse.csr_array(features) if as_sparse else features

    data = small_data(table=FeatureTable(small_matrix(), density_limit=limit), redraw=redraw)
    rows = data.rows(np.array([5, 2]), np.random.default_rng(3))
    assert isinstance(rows, SparseRows if limit == 1.0 else DenseRows)
    expected = redraw(np.array([5, 2]), np.random.default_rng(3))
    expected = expected.toarray() if as_sparse else expected
    np.testing.assert_allclose(rows.dense().numpy(), expected, rtol=1e-6)


def test_features_drawn_anew_may_have_missing_entries():
    table = FeatureTable(small_matrix(), missing=True)
    data = small_data(table=table, redraw=lambda rows, _: np.full((len(rows), D), np.nan))
    rows = data.rows(np.array([1]), np.random.default_rng(0))
    assert rows.dense().sum() == 0
    assert not rows.observed.any()


def test_features_drawn_anew_must_have_the_right_shape():
    data = small_data(redraw=lambda rows, _: np.ones((len(rows) + 1, D)))
    with pytest.raises(ValueError, match=rf"\(3, {D}\) where \(2, {D}\)"):
        data.rows(np.array([0, 1]), np.random.default_rng(0))
