"""Likelihoods: how features are distributed given the decoder's outputs.

The paper's are the multinomial (counts) and Bernoulli (presence). Beyond it there are Gaussian, Poisson and negative
binomial; another is a subclass of `Likelihood` or `EntrywiseLikelihood`, passed as the class.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.nn.likelihoods.base import EntrywiseLikelihood as EntrywiseLikelihood
    from corrvae.nn.likelihoods.base import Likelihood as Likelihood
    from corrvae.nn.likelihoods.bernoulli import Bernoulli as Bernoulli
    from corrvae.nn.likelihoods.choice import LIKELIHOODS as LIKELIHOODS
    from corrvae.nn.likelihoods.choice import make_likelihood as make_likelihood
    from corrvae.nn.likelihoods.gaussian import Gaussian as Gaussian
    from corrvae.nn.likelihoods.multinomial import Multinomial as Multinomial
    from corrvae.nn.likelihoods.negative_binomial import NegativeBinomial as NegativeBinomial
    from corrvae.nn.likelihoods.poisson import Poisson as Poisson

_HOMES = {
    "LIKELIHOODS": ".choice",
    "Bernoulli": ".bernoulli",
    "EntrywiseLikelihood": ".base",
    "Gaussian": ".gaussian",
    "Likelihood": ".base",
    "Multinomial": ".multinomial",
    "NegativeBinomial": ".negative_binomial",
    "Poisson": ".poisson",
    "make_likelihood": ".choice",
}
__all__ = [
    "LIKELIHOODS",
    "Bernoulli",
    "EntrywiseLikelihood",
    "Gaussian",
    "Likelihood",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "make_likelihood",
]

__getattr__, __dir__ = _attach(__name__, _HOMES)
