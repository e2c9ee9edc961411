import numpy as np
import pytest
import torch

from corrvae.nn.likelihoods import Bernoulli
from support.likelihoods import (
    assert_missing_is_left_out,
    assert_samples_have_moments,
    assert_sparse_equals_dense,
    counts,
    outputs,
)


def test_log_prob_is_torchs():
    assert_missing_is_left_out(Bernoulli(6), torch.distributions.Bernoulli(logits=outputs()))


def test_sparse_rows():
    assert_sparse_equals_dense(Bernoulli(6), np.minimum(counts(), 1.0))


def test_samples_and_mean():
    mean = outputs().detach().sigmoid()
    assert_samples_have_moments(Bernoulli(6), mean, mean * (1 - mean))


def test_domain():
    Bernoulli(2).check(np.array([[0.0, 0.3], [1.0, np.nan]]))
    with pytest.raises(
        ValueError, match=r"row 0, column 1 holds 1.5, but the Bernoulli likelihood needs values in \[0, 1\]"
    ):
        Bernoulli(2).check(np.array([[0.0, 1.5]]))
