import numpy as np
import pytest
import torch

from corrvae.nn.likelihoods import Gaussian
from support.likelihoods import (
    assert_missing_is_left_out,
    assert_samples_have_moments,
    assert_sparse_equals_dense,
    counts,
    outputs,
)


def likelihood() -> Gaussian:
    made = Gaussian(6).double()
    torch.nn.init.normal_(made.raw, generator=torch.Generator().manual_seed(3))
    return made


def test_stddev_begins_at_one_and_stays_above_its_floor():
    assert Gaussian(3).stddev.tolist() == pytest.approx([1.0] * 3, rel=1e-6)
    low = Gaussian(1, floor=0.2)
    torch.nn.init.constant_(low.raw, -1e4)
    assert low.stddev.item() == pytest.approx(0.2)
    with pytest.raises(ValueError, match="floor"):
        Gaussian(1, floor=0.0)


def test_log_prob_is_torchs():
    assert_missing_is_left_out(likelihood(), torch.distributions.Normal(outputs(), likelihood().stddev))


def test_sparse_rows():
    assert_sparse_equals_dense(likelihood(), counts() - 0.5 * (counts() > 0))


def test_samples_and_mean():
    mean = outputs().detach()
    assert_samples_have_moments(likelihood(), mean, likelihood().stddev.detach().square().expand_as(mean))


def test_domain():
    Gaussian(2).check(np.array([[-3.0, 1e30]]))
    with pytest.raises(ValueError, match=r"row 0, column 0 holds inf"):
        Gaussian(2).check(np.array([[np.inf, 0.0]]))
