import numpy as np
import pytest
import torch

from corrvae.nn import DenseRows
from corrvae.nn.likelihoods import Multinomial
from corrvae.nn.rows import SparsePattern, SparseRows
from support.likelihoods import assert_samples_have_moments, assert_sparse_equals_dense, counts, outputs


def test_log_prob_is_torchs_without_the_coefficient():
    values = torch.from_numpy(counts())
    logits = outputs().detach()
    found = Multinomial(6).log_prob(logits, DenseRows(values))
    for row in range(4):
        total = int(values[row].sum())
        expected = torch.distributions.Multinomial(total, logits=logits[row]).log_prob(values[row])
        coefficient = torch.lgamma(torch.tensor(total + 1.0).double()) - torch.lgamma(values[row] + 1).sum()
        assert float(found[row]) == pytest.approx(float(expected - coefficient))


def test_sparse_rows():
    assert_sparse_equals_dense(Multinomial(6).double(), counts())


def test_no_rows_have_a_gradient_too():
    nobody = SparseRows(torch.empty(0), SparsePattern.of(torch.empty(0, dtype=torch.int64), torch.zeros(1).long(), 6))
    logits = torch.zeros(0, 6, requires_grad=True)
    Multinomial(6).log_prob(logits, nobody).sum().backward()
    assert logits.grad is not None
    assert logits.grad.shape == (0, 6)


def test_missing_counts_condition_on_the_features_observed():
    values = torch.tensor([[2.0, float("nan"), 1.0]])
    logits = torch.tensor([[0.3, 5.0, -0.2]])
    expected = torch.distributions.Categorical(logits=torch.tensor([0.3, -0.2]))
    found = Multinomial(3).log_prob(logits, DenseRows(values).mask_missing())
    assert float(found) == pytest.approx(float(2 * expected.logits[0] + expected.logits[1]))
    nothing = Multinomial(3).log_prob(logits, DenseRows(torch.full((1, 3), float("nan"))).mask_missing())
    assert float(nothing) == 0.0


def test_samples_and_mean():
    totals = torch.tensor([3.0, 1.0, 10.0, 0.0], dtype=torch.float64)
    probabilities = outputs().detach().softmax(1)
    mean = probabilities * totals[:, None]
    assert_samples_have_moments(Multinomial(6), mean, mean * (1 - probabilities) + 1e-12, totals)
    torch.testing.assert_close(Multinomial(6).mean(outputs().detach()), probabilities)
    one = Multinomial(6).sample(outputs().detach(), np.random.default_rng(0))
    assert one.sum(1).tolist() == [1.0] * 4


def test_domain():
    Multinomial(2).check(np.array([[0.0, 2.5]]))
    with pytest.raises(
        ValueError, match=r"row 1, column 0 holds -1, but the Multinomial likelihood needs finite numbers"
    ):
        Multinomial(2).check(np.array([[0.0, 1.0], [-1.0, -2.0]]))
