import numpy as np
import pytest
import torch

from corrvae.nn.likelihoods import NegativeBinomial
from support.likelihoods import (
    assert_missing_is_left_out,
    assert_samples_have_moments,
    assert_sparse_equals_dense,
    counts,
    outputs,
)


def likelihood() -> NegativeBinomial:
    made = NegativeBinomial(6).double()
    torch.nn.init.normal_(made.log_dispersion, generator=torch.Generator().manual_seed(3))
    torch.nn.init.constant_(made.log_dispersion[:1], 2.0)
    return made


def test_log_prob_is_torchs():
    dispersion = likelihood().log_dispersion.exp()
    logits = outputs() - dispersion.log()
    assert_missing_is_left_out(likelihood(), torch.distributions.NegativeBinomial(dispersion, logits=logits))


def test_sparse_rows():
    assert_sparse_equals_dense(likelihood(), counts())


def test_samples_and_mean():
    mean, dispersion = outputs().detach().exp(), torch.full((6,), 20.0, dtype=torch.float64)
    made = NegativeBinomial(6).double()
    torch.nn.init.constant_(made.log_dispersion, float(np.log(20.0)))
    assert_samples_have_moments(made, mean, mean + mean**2 / dispersion)


def test_domain():
    with pytest.raises(ValueError, match=r"row 0, column 1 holds -0.5, but the NegativeBinomial likelihood"):
        NegativeBinomial(2).check(np.array([[0.0, -0.5]]))
