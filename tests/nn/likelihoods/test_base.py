import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae.nn import DenseRows, EntrywiseLikelihood, FeatureTable, make_likelihood
from corrvae.nn.likelihoods import Bernoulli, Gaussian, Poisson, base
from support.likelihoods import assert_sparse_equals_dense, counts
from support.shards import sharded


class Laplace(EntrywiseLikelihood):
    """A user's own likelihood."""

    domain = "numbers below ten"

    def entry_log_prob(self, outputs, values, columns):
        return -(values - outputs).abs()

    def mean(self, outputs, totals=None):
        return outputs

    def sample(self, outputs, generator, totals=None):
        return outputs

    def admits(self, values):
        return values < 10


def test_a_likelihood_of_ones_own_gets_sparse_and_missing_entries_for_free():
    assert_sparse_equals_dense(Laplace(6), counts())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_check_names_the_first_entry_in_reading_order(form):
    X = np.zeros((5, 4))
    X[3, 1], X[3, 2], X[4, 0] = 12.0, 13.0, 14.0
    with pytest.raises(
        ValueError, match=r"row 3, column 1 holds 12, but the Laplace likelihood needs numbers below ten"
    ):
        Laplace(4).check(form(X))
    X[3:] = np.nan
    Laplace(4).check(form(X))


def test_check_looks_at_every_piece(monkeypatch):
    monkeypatch.setattr(base, "_CHECKED_ROWS", 2)
    X = np.zeros((5, 3))
    X[4, 2] = -1.0
    with pytest.raises(ValueError, match="row 4, column 2"):
        Poisson(3).check(X)


def test_tensors_pass_through_numpy_unchanged():
    like = torch.rand(3)
    assert base.from_numpy(base.to_numpy(like), like).equal(like)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_sparse_rows_far_from_zero_keep_their_digits(size):
    generator = np.random.default_rng(0)
    matrix = np.where(generator.random((6, 40)) < 0.2, size + generator.normal(size=(6, 40)), 0.0)
    rows = FeatureTable(sparse.csr_array(matrix)).rows(np.arange(6))
    outputs = torch.from_numpy(np.where(matrix != 0, size, 0.0).astype(np.float32))
    gaussian = make_likelihood("gaussian", 40)
    expected = gaussian.double().log_prob(outputs.double(), DenseRows(rows.dense().double()))
    torch.testing.assert_close(gaussian.float().log_prob(outputs, rows).double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_entries_that_cannot_be_explained_are_named(make):
    X = np.zeros((3, 3))
    X[1, 2] = -2
    with pytest.raises(ValueError, match="Negative values in data: row 1, column 2 holds -2"):
        Poisson(3).check(make(X))
    with pytest.raises(ValueError, match=r"row 1, column 2 holds 2, but .* \[0, 1\]") as caught:
        Bernoulli(3).check(make(-X))
    assert "Negative" not in str(caught.value)
    X[2, 0] = 3  # the first of several is the one that is spoken of
    with pytest.raises(ValueError, match=r"^row 1, column 2 holds 2, but"):
        Bernoulli(3).check(make(np.abs(X)))
    Gaussian(3).check(make(X))


def test_entries_in_shards_are_checked_wherever_they_are(tmp_path):
    table = sparse.csr_array(np.eye(30, dtype=np.float32))
    Poisson(30).check(sharded(tmp_path, table, 7))
    table.data[17] = -3
    with pytest.raises(ValueError, match="row 17, column 17 holds -3"):
        Poisson(30).check(sharded(tmp_path, table, 7))
