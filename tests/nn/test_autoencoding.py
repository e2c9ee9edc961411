import pytest
import torch
from scipy import sparse
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from corrvae.nn import Decoder, DenseRows, Encoder, FeatureTable, make_likelihood
from corrvae.nn.autoencoding import autoencode, differentiate
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
def test_gradients_without_the_engine_are_those_of_the_engine(hidden, n_edges):
    encoder, decoder, likelihood = networks(hidden, "multinomial")
    rows, generator = features(is_sparse=True), torch.Generator().manual_seed(2)
    noise = torch.randn(N_DRAWN, DIM, dtype=torch.float64, generator=generator)
    edges = torch.randint(0, N_ROWS, (n_edges, 2), generator=generator)
    form = PairPrior.of(0.9, DIM, torch.float64).form_independent
    parameters = [*encoder.parameters(), *decoder.parameters()]
    parameters[-1].requires_grad_(False)
    found = autoencode(encoder, decoder, likelihood, rows, noise, rows, edges, form)
    # not all of the results, and not in their order; without edges these have no form
    values = [found.kl, found.log_prob] if n_edges == 0 else [found.quadratic, found.log_prob]
    slopes = [torch.randn(len(value), dtype=torch.float64, generator=generator) for value in values]
    torch.autograd.backward(values, slopes, retain_graph=True)
    expected = [None if parameter.grad is None else parameter.grad.clone() for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    for times in (1, 2):  # it adds to what is there
        assert differentiate(values, slopes)
        for parameter, gradient in zip(parameters, expected, strict=True):
            if gradient is None:
                assert parameter.grad is None
            else:
                torch.testing.assert_close(parameter.grad, times * gradient)
                assert not parameter.grad.requires_grad
    assert expected[-1] is None
    assert sum(gradient is not None for gradient in expected) == len(parameters) - 1


def test_weights_that_were_computed_are_left_to_the_engine():
    encoder, decoder, likelihood = networks((5,), "multinomial")
    weight_norm(next(layer for layer in decoder.modules() if isinstance(layer, nn.Linear)))
    rows, form = features(is_sparse=True), PairPrior.of(0.9, DIM, torch.float64).form_independent
    given = rows, torch.ones(N_DRAWN, DIM, dtype=torch.float64), rows, torch.tensor([[0, 8]]), form
    found = autoencode(encoder, decoder, likelihood, *given)
    assert not differentiate([found.log_prob], [torch.ones(N_DRAWN, dtype=torch.float64)])
    assert all(parameter.grad is None for parameter in (*encoder.parameters(), *decoder.parameters()))


def test_values_of_two_calls_are_left_to_the_engine():
    encoder, decoder, likelihood = networks((5,), "multinomial")
    rows, form = features(is_sparse=True), PairPrior.of(0.9, DIM, torch.float64).form_independent
    given = rows, torch.ones(N_DRAWN, DIM, dtype=torch.float64), rows, torch.tensor([[0, 8]]), form
    first, second = (autoencode(encoder, decoder, likelihood, *given) for _ in range(2))
    ones = [torch.ones_like(value) for value in (first.kl, second.log_prob)]
    assert not differentiate([first.kl, second.log_prob], ones)
    assert not differentiate([first.kl * 2, first.log_prob], ones)
    assert all(parameter.grad is None for parameter in encoder.parameters())
