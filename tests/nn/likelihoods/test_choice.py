import pytest

from corrvae.nn import make_likelihood
from corrvae.nn.likelihoods import LIKELIHOODS, Gaussian, Likelihood
from support.unchecked import unchecked


@pytest.mark.parametrize("name", sorted(LIKELIHOODS))
def test_names(name):
    made = make_likelihood(name, 7)
    assert isinstance(made, Likelihood)
    assert made.n_features == 7


def test_classes_and_functions():
    assert isinstance(make_likelihood(Gaussian, 3), Gaussian)
    assert make_likelihood(lambda n_features: Gaussian(n_features, floor=0.5), 3).floor == 0.5


def test_others_are_refused():
    with pytest.raises(ValueError, match="'bernoulli', 'gaussian'"):
        make_likelihood("cauchy", 3)
    with unchecked(), pytest.raises(TypeError, match="got int"):
        make_likelihood(3, 3)
    with unchecked(), pytest.raises(TypeError, match="made a list"):
        make_likelihood(lambda n: [], 3)
