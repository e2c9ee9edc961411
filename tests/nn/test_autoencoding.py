import pytest
import torch
from scipy import sparse
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from corrvae.nn import Decoder, DenseRows, Encoder, FeatureTable, make_likelihood
from corrvae.nn.autoencoding import autoencode
from corrvae.nn.closed_forms import draw_and_compare
from corrvae.nn.prior import PairPrior

N_ROWS, N_DRAWN, N_FEATURES, DIM = 9, 4, 7, 3


def networks(hidden, likelihood):
    torch.manual_seed(0)
    encoder, decoder = Encoder(N_FEATURES, DIM, hidden=hidden), Decoder(DIM, N_FEATURES, hidden=hidden)
    return encoder.double(), decoder.double(), make_likelihood(likelihood, N_FEATURES).double()


def features(is_sparse):
    generator = torch.Generator().manual_seed(1)
    counts = torch.poisson(torch.full((N_ROWS, N_FEATURES), 0.4), generator=generator)
    if not is_sparse:
        return DenseRows(counts.double())
    table = FeatureTable(sparse.csr_array(counts.numpy()), density_limit=1.0)
    return table.rows(torch.arange(N_ROWS).numpy()).to(torch.float64)


@pytest.mark.parametrize("hidden", [(), (5,), (6, 5)])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("likelihood", ["multinomial", "gaussian"])
@pytest.mark.parametrize("n_edges", [0, 6])
def test_it_is_the_composition_of_its_parts(hidden, is_sparse, likelihood, n_edges):
    encoder, decoder, scale = networks(hidden, likelihood)
    rows, generator = features(is_sparse), torch.Generator().manual_seed(2)
    targets = rows.head(N_DRAWN)
    noise = torch.randn(N_DRAWN, DIM, dtype=torch.float64, generator=generator)
    edges = torch.randint(0, N_ROWS, (n_edges, 2), generator=generator)
    form = PairPrior.of(0.9, DIM, torch.float64).form_independent
    # of targets that go on, the first are taken
    found = autoencode(encoder, decoder, scale, rows, noise, rows if n_edges else targets, edges, form)
    z, kl, quadratic = draw_and_compare(encoder(rows).joint, noise, edges, form)
    expected = scale.log_prob(decoder(z), targets), kl, quadratic
    ours = found.log_prob, found.kl, found.quadratic
    parameters = [*encoder.parameters(), *decoder.parameters(), *scale.parameters()]
    outer = [torch.randn(len(part), dtype=torch.float64, generator=generator) for part in expected]
    totals = [torch.dot(torch.cat(parts), torch.cat(outer)) for parts in (ours, expected)]
    gradients = [torch.autograd.grad(total, parameters) for total in totals]
    for one, other in zip((*ours, *gradients[0]), (*expected, *gradients[1]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_a_learned_form_gets_its_gradient():
    encoder, decoder, likelihood = networks((5,), "gaussian")
    rows, tau = features(is_sparse=False), torch.tensor(0.9, dtype=torch.float64, requires_grad=True)
    given = rows, torch.zeros(N_DRAWN, DIM, dtype=torch.float64), rows.head(N_DRAWN), torch.tensor([[0, 8]])
    form = PairPrior.of(tau, DIM, torch.float64).form_independent
    ours, expected = (
        autoencode(encoder, decoder, likelihood, *given, form).quadratic,
        form(encoder(rows).joint, given[3]),
    )
    gradients = [torch.autograd.grad(values.sum(), tau, retain_graph=True)[0] for values in (ours, expected)]
    torch.testing.assert_close(*gradients)


def test_missing_counts_go_the_common_way():
    encoder, decoder, likelihood = networks((5,), "multinomial")
    rows = features(is_sparse=True)
    holes = rows.map(lambda values: torch.where(torch.arange(len(values)) % 3 == 0, torch.nan, values)).mask_missing()
    edges, form = torch.zeros((0, 2), dtype=torch.int64), PairPrior.of(0.9, DIM, torch.float64).form_independent
    given = rows, torch.zeros(N_DRAWN, DIM, dtype=torch.float64), holes.head(N_DRAWN), edges, form
    found = autoencode(encoder, decoder, likelihood, *given)
    expected = likelihood.log_prob(decoder(encoder(rows).mean[:N_DRAWN]), holes.head(N_DRAWN))
    torch.testing.assert_close(found.log_prob, expected)


def test_a_gradient_is_the_same_after_another_step_in_between():
    encoder, decoder, likelihood = networks((5,), "multinomial")
    rows, form = features(is_sparse=True), PairPrior.of(0.9, DIM, torch.float64).form_independent
    noise, edges = torch.ones(N_DRAWN, DIM, dtype=torch.float64), torch.tensor([[0, 8], [1, 2]])

    def step():
        found = autoencode(encoder, decoder, likelihood, rows, noise, rows.head(N_DRAWN), edges, form)
        return found.log_prob.sum() - found.kl.sum() - found.quadratic.sum()

    first, second = step(), step()
    gradients = [torch.autograd.grad(total, [*encoder.parameters()]) for total in (first, second)]
    for one, other in zip(*gradients, strict=True):
        assert one.equal(other)


def test_rows_of_another_width_are_refused():
    encoder, decoder, likelihood = networks((5,), "gaussian")
    rows, form = DenseRows(torch.ones(2, N_FEATURES + 1)), PairPrior.of(0.9, DIM).form_independent
    with pytest.raises(ValueError, match=f"have {N_FEATURES + 1} columns"):
        autoencode(encoder, decoder, likelihood, rows, torch.ones(1, DIM), rows, torch.tensor([[0, 1]]), form)


@pytest.mark.parametrize("hidden", [(), (5,), (6, 5)])
@pytest.mark.parametrize("n_edges", [0, 6])
def test_a_tape_gives_the_gradients_of_the_engine(hidden, n_edges):
    encoder, decoder, likelihood = networks(hidden, "multinomial")
    rows, generator = features(is_sparse=True), torch.Generator().manual_seed(2)
    noise = torch.randn(N_DRAWN, DIM, dtype=torch.float64, generator=generator)
    edges = torch.randint(0, N_ROWS, (n_edges, 2), generator=generator)
    given = rows, noise, rows, edges, PairPrior.of(0.9, DIM, torch.float64).form_independent
    parameters = [*encoder.parameters(), *decoder.parameters()]
    parameters[-1].requires_grad_(False)
    found = autoencode(encoder, decoder, likelihood, *given)
    values = found.log_prob, found.kl, found.quadratic
    slopes = [torch.randn(len(value), dtype=torch.float64, generator=generator) for value in values]
    torch.autograd.backward(values, slopes)
    expected = [None if parameter.grad is None else parameter.grad.clone() for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    for times in (1, 2):  # it adds to what is there
        taped = autoencode(encoder, decoder, likelihood, *given, taped=True)
        for one, other in zip((taped.log_prob, taped.kl, taped.quadratic), values, strict=True):
            assert one.equal(other)
            assert not one.requires_grad
        taped.tape.lead_back(*slopes[:2], slopes[2] if n_edges else None)
        for parameter, gradient in zip(parameters, expected, strict=True):
            if gradient is None:
                assert parameter.grad is None
            else:
                torch.testing.assert_close(parameter.grad, times * gradient)
                assert not parameter.grad.requires_grad
    assert [gradient is None for gradient in expected] == [False] * (len(parameters) - 1) + [True]


def weight_normed(encoder, decoder):
    weight_norm(next(layer for layer in decoder.modules() if isinstance(layer, nn.Linear)))


def fixed(encoder, decoder):
    encoder.requires_grad_(False)
    decoder.requires_grad_(False)


def turned(encoder, decoder):
    """As a weight that was trained elsewhere: Adam reads it in the order in which it lies."""
    encoder.first.weight = nn.Parameter(encoder.first.weight.detach().t().contiguous().t())


@pytest.mark.parametrize("change", [weight_normed, fixed, turned])
def test_networks_that_are_left_to_the_engine(change):
    encoder, decoder, likelihood = networks((5,), "multinomial")
    rows, form = features(is_sparse=True), PairPrior.of(0.9, DIM, torch.float64).form_independent
    given = rows, torch.ones(N_DRAWN, DIM, dtype=torch.float64), rows, torch.tensor([[0, 8]]), form
    assert autoencode(encoder, decoder, likelihood, *given, taped=True).tape is not None
    change(encoder, decoder)
    found = autoencode(encoder, decoder, likelihood, *given, taped=True)
    assert found.tape is None
    assert found.log_prob.requires_grad == (change is not fixed)


def test_without_derivatives_there_is_no_tape():
    encoder, decoder, likelihood = networks((5,), "multinomial")
    rows, form = features(is_sparse=True), PairPrior.of(0.9, DIM, torch.float64).form_independent
    given = rows, torch.ones(N_DRAWN, DIM, dtype=torch.float64), rows, torch.tensor([[0, 8]]), form
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert autoencode(encoder, decoder, likelihood, *given, taped=True).tape is None


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_likelihood_that_torch_differentiates_is_left_to_it(is_sparse):
    encoder, decoder, likelihood = networks((5,), "gaussian")
    rows, form = features(is_sparse), PairPrior.of(0.9, DIM, torch.float64).form_independent
    given = rows, torch.ones(N_DRAWN, DIM, dtype=torch.float64), rows, torch.tensor([[0, 8]]), form
    found = autoencode(encoder, decoder, likelihood, *given, taped=True)
    assert found.tape is None
    assert found.log_prob.requires_grad
