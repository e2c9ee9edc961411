import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corrvae.inference import infer_posterior
from corrvae.model import VertexIndex
from corrvae.nn import Decoder, DenseRows, Encoder, FeatureTable, make_likelihood
from corrvae.nn.autoencoding import autoencode
from corrvae.nn.closed_forms import draw_and_compare
from corrvae.nn.kernels import choice, sums
from corrvae.nn.kernels.choice import used, using
from corrvae.nn.prior import PairPrior
from corrvae.training import train
from support.rows import matrices
from support.training import N, small_data, small_matrix, small_model, small_settings


def test_a_choice_holds_for_a_while():
    assert used()
    with using(False):
        assert not used()
        with using(True):
            assert used()
        assert not used()
    with pytest.raises(KeyError), using(False):
        raise KeyError
    assert used()


@given(st.data())
def test_distinct_vertices_are_the_same_either_way(data):
    n_vertices = data.draw(st.integers(1, 12))
    vertex = st.integers(0, n_vertices - 1)
    drawn = np.array(data.draw(st.lists(vertex, unique=True)), dtype=np.int64)
    edges = np.array(data.draw(st.lists(st.tuples(vertex, vertex))), dtype=np.int64).reshape(-1, 2)
    found = []
    for wanted in (False, True):
        with using(wanted):
            found.append(VertexIndex(n_vertices).distinct(drawn, edges))
    np.testing.assert_array_equal(found[0].vertices, found[1].vertices)
    np.testing.assert_array_equal(found[0].positions, found[1].positions)
    assert found[0].positions.shape == edges.shape


@given(matrices(), st.integers(0, 2**32 - 1))
def test_picked_rows_are_the_same_either_way(matrix, seed):
    table = FeatureTable(matrix, density_limit=1.0)
    indices = np.random.default_rng(seed).permutation(matrix.shape[0])
    found = []
    for wanted in (False, True):
        with using(wanted):
            rows = table.rows(indices)
            pattern, across = rows.pattern, rows.pattern.transposition
            parts = pattern.columns, pattern.offsets, pattern.row_of, across.order, across.rows, across.offsets
            found.append([rows.values, *parts])
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    np.testing.assert_array_equal(rows.dense(), matrix.toarray()[indices].astype(np.float32))


@pytest.mark.parametrize("n_edges", [0, 6])
@pytest.mark.parametrize("hidden", [(), (6, 5)])
def test_a_pass_and_its_gradients_are_the_same_either_way(hidden, n_edges):
    torch.manual_seed(0)
    networks = Encoder(7, 3, hidden=hidden).double(), Decoder(3, 7, hidden=hidden).double()
    likelihood, rows = make_likelihood("gaussian", 7).double(), DenseRows(torch.randn(9, 7, dtype=torch.float64))
    noise, edges = torch.randn(4, 3, dtype=torch.float64), torch.randint(0, 9, (n_edges, 2))
    form = PairPrior.of(0.9, 3, torch.float64).form_independent
    outer = [torch.randn(size, dtype=torch.float64) for size in (4, 4, n_edges)]
    parameters = [*networks[0].parameters(), *networks[1].parameters()]
    found = []
    for wanted in (False, True):
        with using(wanted):
            passed = autoencode(*networks, likelihood, rows, noise, rows, edges, form)
            values = [passed.log_prob, passed.kl, passed.quadratic]
            total = sum(torch.dot(value, slope) for value, slope in zip(values, outer, strict=True))
            found.append([*values, *torch.autograd.grad(total, parameters)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_targets", [4, 9])
def test_a_tape_of_counts_is_the_same_either_way(n_targets):
    torch.manual_seed(0)
    encoder, decoder = Encoder(9, 3, hidden=(6,)).double(), Decoder(3, 9, hidden=(6,)).double()
    rows = FeatureTable(small_matrix(9), density_limit=1.0).rows(np.arange(9)).to(torch.float64)
    noise, edges = torch.randn(4, 3, dtype=torch.float64), torch.randint(0, 9, (6, 2))
    given = rows, noise, rows.head(n_targets), edges, PairPrior.of(0.9, 3, torch.float64).form_independent
    outer = [torch.randn(size, dtype=torch.float64) for size in (4, 4, 6)]
    parameters = [*encoder.parameters(), *decoder.parameters()]
    found = []
    for wanted in (False, True):
        with using(wanted):
            passed = autoencode(encoder, decoder, make_likelihood("multinomial", 9), *given, taped=True)
            passed.tape.lead_back(*outer)
        found.append([passed.log_prob, passed.kl, passed.quadratic, *(part.grad for part in parameters)])
        for part in parameters:
            part.grad = None
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_draws_of_one_vertex_in_several_edges_are_the_same_either_way():
    joint = torch.rand(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.1
    noise, pairs = torch.ones(2, 3, dtype=torch.float64), torch.tensor([[0, 4], [0, 4], [4, 0], [3, 3]])
    form = PairPrior.of(-0.8, 3, torch.float64).form
    found = []
    for wanted in (False, True):
        leaf = joint.clone().requires_grad_()
        with using(wanted):
            results = draw_and_compare(leaf, noise, pairs, form)
            torch.cat([part.reshape(-1) for part in results]).square().sum().backward()
        found.append([*results, leaf.grad])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def refuse(*_):
    raise AssertionError("a kernel")


@pytest.fixture
def without_picking(monkeypatch):
    monkeypatch.setattr("corrvae.nn.features.pick_rows", refuse)
    monkeypatch.setattr("corrvae.nn.kernels.picking.sort_by_column", refuse)
    return FeatureTable(small_matrix(), density_limit=1.0)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("pair", [None, "bilinear"])
def test_training_on_few_rows_compiles_none_that_it_can_do_without(monkeypatch, without_picking, pair, is_sparse):
    for name in (
        "draw_and_compare",
        "draw_and_compare_gradient",
        "soften_gradient",
        "rectify_gradient",
        "log_likelihood_of_counts",
        "counts_gradient",
    ):
        monkeypatch.setattr(sums, name, refuse)
    monkeypatch.setattr("corrvae.nn.chains.soften", refuse)
    monkeypatch.setattr("corrvae.model.number_vertices", refuse)
    assert used()
    data = small_data(table=without_picking) if is_sparse else small_data()
    assert data.table.sparse_batches == is_sparse
    assert train(small_model(pair), data, small_settings(max_steps=5)).n_steps == 5


@pytest.mark.parametrize("enough", [N, N + 1])
def test_training_on_many_rows_uses_them(monkeypatch, enough):
    monkeypatch.setattr(choice, "_ENOUGH_ROWS", enough)
    seen = []
    train(small_model(), small_data(), small_settings(max_steps=2), callbacks=[lambda _: seen.append(used())])
    assert seen == [enough == N] * 2
    assert used()


def test_encoding_compiles_none(monkeypatch, without_picking):
    monkeypatch.setattr("corrvae.nn.chains.soften", refuse)
    assert used()
    assert infer_posterior(small_model(), small_data().table).n_vertices == N
    assert infer_posterior(small_model(), without_picking).n_vertices == N
