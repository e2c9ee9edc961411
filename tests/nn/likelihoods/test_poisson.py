import numpy as np
import pytest
import torch
from scipy import sparse

from corrvae.nn.likelihoods import Poisson
from support.likelihoods import (
    assert_missing_is_left_out,
    assert_samples_have_moments,
    assert_sparse_equals_dense,
    counts,
    outputs,
)


def test_log_prob_is_torchs():
    assert_missing_is_left_out(Poisson(6), torch.distributions.Poisson(outputs().exp()))


def test_sparse_rows():
    assert_sparse_equals_dense(Poisson(6), counts())


def test_samples_and_mean():
    rate = outputs().detach().exp()
    assert_samples_have_moments(Poisson(6), rate, rate)


def test_domain():
    with pytest.raises(ValueError, match=r"row 2, column 1 holds -1, but the Poisson likelihood"):
        Poisson(2).check(sparse.csr_array(np.array([[0.0, 1.0], [0.0, 0.0], [4.0, -1.0]])))
