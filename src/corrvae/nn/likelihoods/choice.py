"""Likelihoods by name."""

from collections.abc import Callable

from corrvae.nn.likelihoods.base import Likelihood
from corrvae.nn.likelihoods.bernoulli import Bernoulli
from corrvae.nn.likelihoods.gaussian import Gaussian
from corrvae.nn.likelihoods.multinomial import Multinomial
from corrvae.nn.likelihoods.negative_binomial import NegativeBinomial
from corrvae.nn.likelihoods.poisson import Poisson

LIKELIHOODS: dict[str, Callable[[int], Likelihood]] = {
    "multinomial": Multinomial,
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
}


def make_likelihood(choice: str | Callable[[int], Likelihood], n_features: int) -> Likelihood:
    """Make a likelihood from its name, or from a class (or function) that takes the number of features.

    Examples
    --------
    >>> make_likelihood("poisson", 5)
    Poisson()
    """
    if isinstance(choice, str):
        if choice not in LIKELIHOODS:
            raise ValueError(f"likelihood must be one of {sorted(LIKELIHOODS)} or a Likelihood class, got {choice!r}")
        return LIKELIHOODS[choice](n_features)
    if not callable(choice):
        raise TypeError(f"likelihood must be a name or a Likelihood class, got {type(choice).__name__}")
    made = choice(n_features)
    if not isinstance(made, Likelihood):
        raise TypeError(f"likelihood made a {type(made).__name__}, which is not a corrvae.nn.Likelihood")
    return made
