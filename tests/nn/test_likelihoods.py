import numpy as np
import pytest
import torch
from scipy import sparse, stats
from torch import distributions

from corrvae.nn import (
    LIKELIHOODS,
    NORMALIZATIONS,
    DenseRows,
    EntrywiseLikelihood,
    FeatureTable,
    Likelihood,
    choose_likelihood,
    make_likelihood,
)
from corrvae.nn.likelihoods import Bernoulli, Gaussian, Multinomial, NegativeBinomial, Poisson, base
from support.likelihoods import (
    assert_log_prob_is,
    assert_samples_have_moments,
    assert_sparse_equals_dense,
    counts,
    outputs,
)
from support.rows import sparse_rows
from support.unchecked import unchecked


class Laplace(EntrywiseLikelihood):
    """A user's own likelihood."""

    domain = "numbers below ten"

    def entry_log_prob(self, outputs, values, columns):
        return -(values - outputs).abs()

    def mean(self, outputs, totals=None):
        return outputs

    def sample(self, outputs, generator, totals=None):
        return outputs

    def admits(self, values):
        return values < 10


def made(name: str) -> Likelihood:
    """Return a likelihood in double precision with parameters that differ between features."""
    likelihood = make_likelihood(name, 6).double()
    for parameter in likelihood.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(3))
    return likelihood


def entrywise(name: str) -> tuple[Likelihood, distributions.Distribution]:
    """Return a likelihood, and torch's distribution of its entries."""
    likelihood = made(name)
    if isinstance(likelihood, Gaussian):
        return likelihood, distributions.Normal(outputs(), likelihood.stddev)
    if isinstance(likelihood, NegativeBinomial):
        log_dispersion = likelihood.log_dispersion
        return likelihood, distributions.NegativeBinomial(log_dispersion.exp(), logits=outputs() - log_dispersion)
    if isinstance(likelihood, Poisson):
        return likelihood, distributions.Poisson(outputs().exp())
    return likelihood, distributions.Bernoulli(logits=outputs())


ENTRYWISE = ["bernoulli", "gaussian", "negative_binomial", "poisson"]


@pytest.mark.parametrize("name", ENTRYWISE)
def test_log_prob_is_torchs_and_leaves_missing_entries_out(name):
    assert_log_prob_is(*entrywise(name))


@pytest.mark.parametrize("name", ENTRYWISE)
def test_samples_and_mean(name):
    likelihood, _ = entrywise(name)
    if isinstance(likelihood, NegativeBinomial):
        torch.nn.init.constant_(likelihood.log_dispersion, float(np.log(20.0)))  # small dispersions have long tails
        mean = outputs().detach().exp()
        return assert_samples_have_moments(likelihood, mean, mean + mean**2 / 20.0)
    _, distribution = entrywise(name)
    return assert_samples_have_moments(likelihood, distribution.mean.detach(), distribution.variance.detach())


@pytest.mark.parametrize("name", [*ENTRYWISE, "multinomial"])
def test_sparse_equals_dense(name):
    assert_sparse_equals_dense(made(name), np.minimum(counts(), 1.0) if name == "bernoulli" else counts())
    if name == "gaussian":
        assert_sparse_equals_dense(made(name), counts() - 0.5 * (counts() > 0))


@pytest.mark.parametrize("name", [*ENTRYWISE, "multinomial"])
def test_gradients(name):
    likelihood, values = made(name), torch.from_numpy(counts()).clamp(max=1.0)
    rows = sparse_rows(sparse.csr_array(values.numpy()))
    assert torch.autograd.gradcheck(lambda o: likelihood.log_prob(o, rows), outputs())


def test_scipys_negative_binomial_and_poisson_agree():
    values, given = counts(), outputs().detach()
    likelihood = made("negative_binomial")
    r = likelihood.log_dispersion.exp().detach().numpy()
    expected = stats.nbinom.logpmf(values, r, r / (r + given.exp().numpy())).sum(1)
    found = likelihood.log_prob(given, DenseRows(torch.from_numpy(values))).detach().numpy()
    np.testing.assert_allclose(found, expected)
    found = Poisson(6).log_prob(given, DenseRows(torch.from_numpy(values))).numpy()
    np.testing.assert_allclose(found, stats.poisson.logpmf(values, given.exp().numpy()).sum(1))


def test_multinomial_is_torchs_without_the_coefficient():
    values = torch.from_numpy(counts())
    logits = outputs().detach()
    found = Multinomial(6).log_prob(logits, DenseRows(values))
    for row in range(4):
        total = int(values[row].sum())
        expected = distributions.Multinomial(total, logits=logits[row]).log_prob(values[row])
        coefficient = torch.lgamma(torch.tensor(total + 1.0).double()) - torch.lgamma(values[row] + 1).sum()
        assert float(found[row]) == pytest.approx(float(expected - coefficient))


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_multinomial_is_stable_for_large_outputs(size):
    values = np.array([[2.0, 0.0, 1.0, 0.0]])
    for logits in ([size, 0.0, size - 1, 0.0], [-size, -size, -size, -2 * size], [size] * 4):
        exact = torch.tensor([logits], dtype=torch.float64).log_softmax(1)
        single = torch.tensor([logits], requires_grad=True)
        for rows in (DenseRows(torch.from_numpy(values).float()), sparse_rows(sparse.csr_array(values), torch.float32)):
            found = Multinomial(4).log_prob(single, rows)
            assert float(found.detach()) == pytest.approx(float(2 * exact[0, 0] + exact[0, 2]), rel=1e-6)
            (gradient,) = torch.autograd.grad(found.sum(), single)
            expected = torch.from_numpy(values) - 3 * exact.exp()
            torch.testing.assert_close(gradient.double(), expected, atol=1e-5, rtol=1e-5)


def test_missing_counts_condition_on_the_features_observed():
    values = np.array([[2.0, np.nan, 1.0]], np.float32)
    logits = torch.tensor([[0.3, 5.0, -0.2]])
    expected = distributions.Categorical(logits=torch.tensor([0.3, -0.2])).logits
    for rows in (DenseRows(torch.from_numpy(values)), sparse_rows(sparse.csr_array(values), torch.float32)):
        found = Multinomial(3).log_prob(logits, rows.mask_missing())
        assert float(found) == pytest.approx(float(2 * expected[0] + expected[1]))
    nothing = DenseRows(torch.full((1, 3), float("nan"))).mask_missing()
    assert float(Multinomial(3).log_prob(logits, nothing)) == 0.0


def test_no_rows_have_a_gradient_too():
    nobody = sparse_rows(sparse.csr_array(np.zeros((0, 6))), torch.float32)
    logits = torch.zeros(0, 6, requires_grad=True)
    Multinomial(6).log_prob(logits, nobody).sum().backward()
    assert logits.grad is not None
    assert logits.grad.shape == (0, 6)


def test_multinomial_samples_and_mean():
    totals = torch.tensor([3.0, 1.0, 10.0, 0.0], dtype=torch.float64)
    probabilities = outputs().detach().softmax(1)
    mean = probabilities * totals[:, None]
    assert_samples_have_moments(Multinomial(6), mean, mean * (1 - probabilities) + 1e-12, totals)
    torch.testing.assert_close(Multinomial(6).mean(outputs().detach()), probabilities)
    one = Multinomial(6).sample(outputs().detach(), np.random.default_rng(0))
    assert one.sum(1).tolist() == [1.0] * 4


def test_gaussian_stddev_begins_at_one_and_stays_above_its_floor():
    assert Gaussian(3).stddev.tolist() == pytest.approx([1.0] * 3, rel=1e-6)
    low = Gaussian(1, floor=0.2)
    torch.nn.init.constant_(low.raw, -1e4)
    assert low.stddev.item() == pytest.approx(0.2)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_sparse_rows_far_from_zero_keep_their_digits(size):
    generator = np.random.default_rng(0)
    matrix = np.where(generator.random((6, 40)) < 0.2, size + generator.normal(size=(6, 40)), 0.0)
    rows = FeatureTable(sparse.csr_array(matrix)).rows(np.arange(6))
    means = torch.from_numpy(np.where(matrix != 0, size, 0.0).astype(np.float32))
    gaussian = make_likelihood("gaussian", 40)
    expected = gaussian.double().log_prob(means.double(), DenseRows(rows.dense().double()))
    torch.testing.assert_close(gaussian.float().log_prob(means, rows).double(), expected, rtol=1e-5, atol=1e-5)


def test_a_likelihood_of_ones_own_gets_sparse_and_missing_entries_for_free():
    assert_sparse_equals_dense(Laplace(6), counts())
    assert not Laplace.non_negative
    assert Laplace.default_normalize == "none"


@pytest.mark.parametrize("piece", [3, 1 << 22])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_check_names_the_first_entry_in_reading_order(form, piece, monkeypatch):
    monkeypatch.setattr(base, "_PIECE", piece)
    X = np.zeros((5, 4))
    X[1, 2], X[3, 1], X[3, 2], X[4, 0] = 2.0, 12.0, 13.0, 14.0
    with pytest.raises(ValueError, match=r"^row 3, column 1 holds 12, but the Laplace likelihood needs numbers below"):
        Laplace(4).check(form(X))
    X[3:] = np.nan
    Laplace(4).check(form(X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_entries_outside_the_domain_are_named(form):
    X = np.zeros((3, 3))
    X[1, 2] = -2
    for counting in (Poisson(3), NegativeBinomial(3), Multinomial(3)):
        with pytest.raises(ValueError, match=r"Negative values in data: row 1, column 2 holds -2, but .* finite"):
            counting.check(form(X))
        counting.check(form(np.abs(X) / 4))
    with pytest.raises(ValueError, match=r"^row 1, column 2 holds 2, but .* \[0, 1\]"):
        Bernoulli(3).check(form(-X))
    Bernoulli(3).check(form(-X / 4))
    Gaussian(3).check(form(X))
    X[0, 1] = np.inf
    for likelihood in LIKELIHOODS.values():
        with pytest.raises(ValueError, match="row 0, column 1 holds inf"):
            likelihood(3).check(form(X))


def test_tensors_pass_through_numpy_unchanged():
    like = torch.rand(3)
    assert base.from_numpy(base.to_numpy(like), like).equal(like)


@pytest.mark.parametrize("name", sorted(LIKELIHOODS))
def test_names(name):
    likelihood = make_likelihood(name, 7)
    assert isinstance(likelihood, Likelihood)
    assert likelihood.n_features == 7
    assert likelihood.default_normalize in NORMALIZATIONS
    assert likelihood.non_negative != bool(likelihood.admits(np.array([-1.0]))[0])


def test_default_normalisations():
    found = {name: likelihood.default_normalize for name, likelihood in LIKELIHOODS.items()}
    assert found == {
        "multinomial": "l2",
        "bernoulli": "none",
        "gaussian": "none",
        "poisson": "log1p",
        "negative_binomial": "log1p",
    }


def test_classes_and_functions():
    assert isinstance(make_likelihood(Gaussian, 3), Gaussian)
    assert make_likelihood(lambda n_features: Gaussian(n_features, floor=0.5), 3).floor == 0.5


def test_other_choices_are_named():
    with pytest.raises(ValueError, match="'bernoulli', 'gaussian'"):
        make_likelihood("cauchy", 3)
    with unchecked(), pytest.raises(TypeError, match="got int"):
        make_likelihood(3, 3)
    with unchecked(), pytest.raises(TypeError, match="returned a list"):
        make_likelihood(lambda n: [], 3)


RNG = np.random.default_rng(0)
SPARSE = (RNG.random((40, 30)) < 0.1).astype(np.float32)
TABLES = {
    "0 or 1, mostly 0, many columns": (SPARSE, "multinomial"),
    "0 or 1, mostly 0, few columns": (SPARSE[:, :10], "bernoulli"),
    "0 or 1, mostly 1": (1 - SPARSE, "bernoulli"),
    "ratings with halves": (SPARSE * 4.5, "multinomial"),
    "counts of few things": (SPARSE[:, :10] * 3, "negative_binomial"),
    "counts with some zeros": ((RNG.poisson(2.0, (40, 30))).astype(np.float32), "negative_binomial"),
    "years": (RNG.integers(1950, 2020, (40, 3)).astype(np.float32), "gaussian"),
    "lengths": (RNG.random((40, 30)).astype(np.float32), "gaussian"),
    "sparse, but with a negative number": (-SPARSE, "gaussian"),
}


@pytest.mark.parametrize("piece", [50, 1 << 22])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_the_numbers_decide_however_they_are_kept(name, form, piece, monkeypatch):
    monkeypatch.setattr(base, "_PIECE", piece)
    table, likelihood = TABLES[name]
    assert choose_likelihood(form(table))[0] == likelihood
    assert LIKELIHOODS[likelihood](table.shape[1]).admits(table).all()


def test_missing_numbers_do_not_count():
    holes = np.where(RNG.random((40, 30)) < 0.9, np.nan, 1.0 - SPARSE).astype(np.float32)
    assert choose_likelihood(holes, missing=True)[0] == "bernoulli"
    assert choose_likelihood(sparse.csr_array(holes), missing=True)[0] == "bernoulli"


def test_the_reason_is_given():
    table = sparse.csr_array(([3.0, 1.0], ([0, 1], [0, 5])), shape=(50, 20))
    assert choose_likelihood(table) == ("multinomial", "no feature is negative, and 99.8% are zeros")
