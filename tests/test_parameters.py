import inspect

import numpy as np
import pytest

from corrvae import CorrelatedVAE
from corrvae.nn import PairBilinear
from corrvae.nn.likelihoods import Gaussian
from corrvae.parameters import CONSTRAINTS, check_parameters


def test_every_parameter_has_its_constraints():
    assert list(CONSTRAINTS) == [*inspect.signature(CorrelatedVAE).parameters]


def test_the_list_stays_humane():
    assert len(CONSTRAINTS) <= 26


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"gamma": (1.0, 2.0, 3.0)}, "a number or a pair"),
        ({"gamma": (1.0, -1.0)}, "must not be negative"),
        ({"gamma": ("a", 1.0)}, "a number or a pair of numbers"),
        ({"gamma": (float("nan"), 1.0)}, "must not be negative, infinite or not a number"),
        ({"gamma": [1.0, float("inf")]}, "must not be negative, infinite or not a number"),
        ({"gamma": [1.0]}, "a number or a pair"),
        ({"hidden": (True,)}, "hidden must be positive whole numbers"),
        ({"normalize": ("l2", "l3")}, "or a pair of them"),
        ({"normalize": ["l2"]}, "or a pair of them"),
        ({"normalize": (["l2"], "raw")}, "or a pair of them"),
        ({"dropout": (0.5, 1.0)}, r"or a pair of them \(encoder, pair network\)"),
        ({"dropout": [0.5]}, "or a pair of them"),
        ({"patience": 3}, "validation_fraction"),
        ({"hidden": (3, 0)}, "hidden must be positive whole numbers"),
        ({"pair_hidden": ["wide"]}, "pair_hidden must be positive whole numbers"),
        ({"tau": -1}, "'tau' parameter"),
        ({"pair_hidden": ()}, 'pair_hidden is empty, but pair_network="perceptron" needs'),
        ({"min_stddev": 1e-60}, "'min_stddev' parameter"),
    ],
)
def test_what_does_not_go_together_is_said(parameters, words):
    with pytest.raises(ValueError, match=words):
        check_parameters(CorrelatedVAE().set_params(**parameters))


def test_what_goes_together_passes():
    check_parameters(CorrelatedVAE(gamma=(0.0, 5.0), patience=3, validation_fraction=0.1))
    check_parameters(
        CorrelatedVAE(gamma=[0, 5], likelihood=Gaussian, pair_network=PairBilinear, normalize=["l2", "raw"])
    )
    check_parameters(CorrelatedVAE(pair_network="bilinear", pair_hidden=(), min_stddev=1e-30))
    check_parameters(CorrelatedVAE().set_params(hidden=[np.int64(3)], dropout=(0, 0.5)))


@pytest.mark.parametrize(("name", "kind"), [("likelihood", "Likelihood"), ("pair_network", "PairNetwork")])
def test_a_class_of_something_else_is_refused(name, kind):
    with pytest.raises(TypeError, match=rf"{name} is the class dict, which is not a corrvae\.nn\.{kind}"):
        check_parameters(CorrelatedVAE(**{name: dict}))
