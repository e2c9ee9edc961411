"""Likelihoods: how features are distributed given the decoder's outputs.

The paper uses the multinomial (counts) and the Bernoulli (presence); there are also Gaussian, Poisson and negative
binomial. A new built-in likelihood is one file here and one line in `LIKELIHOODS`; a user's own is a subclass of
`Likelihood` or `EntrywiseLikelihood`, passed as the class.
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from corrvae.nn.likelihoods.base import EntrywiseLikelihood as EntrywiseLikelihood
from corrvae.nn.likelihoods.base import Likelihood as Likelihood
from corrvae.nn.likelihoods.base import stored_pieces
from corrvae.nn.likelihoods.bernoulli import Bernoulli as Bernoulli
from corrvae.nn.likelihoods.gaussian import Gaussian as Gaussian
from corrvae.nn.likelihoods.multinomial import Multinomial as Multinomial
from corrvae.nn.likelihoods.negative_binomial import NegativeBinomial as NegativeBinomial
from corrvae.nn.likelihoods.poisson import Poisson as Poisson

LIKELIHOODS: dict[str, type[Likelihood]] = {
    "multinomial": Multinomial,
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
}
"""Likelihoods by name."""

# From this share of zeros on, features are what a row has of many things: sets, counts, ratings.
_MANY_ZEROS = 0.9
# Counts include zeros; measurements that happen to be whole numbers hardly do.
_SOME_ZEROS = 0.02
# Draws from fewer things than this carry little information about a row.
_FEWEST_THINGS = 20
# Rows by which the variance of columns is judged.
_ROWS = 1000


def make_likelihood(choice: str | Callable[[int], Likelihood], n_features: int) -> Likelihood:
    """Return a likelihood from its name, or from a class (or function) that takes the number of features."""
    if isinstance(choice, str):
        if choice not in LIKELIHOODS:
            raise ValueError(f"likelihood must be one of {sorted(LIKELIHOODS)} or a Likelihood class, got {choice!r}")
        return LIKELIHOODS[choice](n_features)
    if not callable(choice):
        raise TypeError(f"likelihood must be a name or a Likelihood class, got {type(choice).__name__}")
    made = choice(n_features)
    if not isinstance(made, Likelihood):
        raise TypeError(f"likelihood returned a {type(made).__name__}, which is not a corrvae.nn.Likelihood")
    return made


def choose_likelihood(matrix: np.ndarray | sparse.spmatrix | sparse.sparray, missing: bool = False) -> tuple[str, str]:
    """Return the name of the likelihood that suits the numbers of a matrix, and the reason.

    ======================================================  =====================
    numbers                                                 likelihood
    ======================================================  =====================
    some are negative                                       gaussian
    nine in ten are zeros, in 20 columns or more            multinomial
    only 0 and 1                                            bernoulli
    whole numbers, some zeros or as varied as counts        negative_binomial
    any others                                              gaussian
    ======================================================  =====================

    Entries that are `missing` (NaN) do not count.
    """
    matrix = matrix if isinstance(matrix, np.ndarray) else sparse.csr_array(matrix)
    n_rows, n_columns = matrix.shape  # pyright: ignore[reportGeneralTypeIssues]
    negative, binary, whole = False, True, True
    n_zeros = n_known = n_rows * n_columns
    for stored in stored_pieces(matrix):
        values = stored[~np.isnan(stored)] if missing else stored
        n_known -= len(stored) - len(values)
        n_zeros -= len(stored) - int((values == 0).sum())
        negative |= bool((values < 0).any())
        binary &= bool(((values == 0) | (values == 1)).all())
        whole &= bool((values == np.rint(values)).all())
    zeros = n_zeros / max(1, n_known)
    if negative:
        return "gaussian", "some features are negative"
    if zeros >= _MANY_ZEROS and n_columns >= _FEWEST_THINGS:
        return "multinomial", f"no feature is negative, and {zeros:.1%} are zeros"
    if binary:
        return "bernoulli", "all features are 0 or 1"
    if whole and (zeros >= _SOME_ZEROS or _spread_like_counts(matrix)):
        return "negative_binomial", "all features are whole numbers from 0 up, like counts"
    if whole:
        return "gaussian", "all features are whole numbers, but hardly any is 0, unlike counts"
    return "gaussian", "the features are real numbers"


def _spread_like_counts(matrix: np.ndarray | sparse.csr_array) -> bool:
    """Return whether most columns vary at least as much as Poisson counts of the same mean, in the first rows."""
    first = matrix[:_ROWS]
    values = first if isinstance(first, np.ndarray) else first.toarray()
    with np.errstate(all="ignore"):
        return bool(np.nanmedian(np.nanvar(values, axis=0) / np.nanmean(values, axis=0)) >= 1.0)
