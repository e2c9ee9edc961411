from itertools import pairwise

import pytest
import torch
from scipy import sparse
from torch import nn
from torch.nn.functional import softplus

from corrvae.nn import DenseRows, FeatureTable
from corrvae.nn.chains import apply_chain, encode_chain, parameters_of

WIDTHS = [(4, 3), (4, 5, 3), (4, 6, 5, 2)]


def chain(widths):
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.ReLU(), nn.Linear(inputs, outputs)]
    return nn.Sequential(*layers[1:]).double()


@pytest.mark.parametrize("widths", WIDTHS)
def test_a_chain_is_its_layers(widths):
    layers, points = chain(widths), torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    parameters = parameters_of(layers)
    torch.testing.assert_close(apply_chain(points, parameters), layers(points))
    outer = torch.randn(7, widths[-1], dtype=torch.float64)
    agree(apply_chain(points, parameters), layers(points), outer, (points, *parameters))
    points = points.detach()  # no gradient asked for
    agree(apply_chain(points, parameters), layers(points), outer, parameters)


def agree(ours, theirs, outer, wanted):
    gradients = (torch.autograd.grad((value * outer).sum(), wanted) for value in (ours, theirs))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("widths", [(6,), (5, 6), (5, 4, 6)])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_an_encoder_is_its_layers(widths, is_sparse):
    torch.manual_seed(1)
    matrix = torch.rand(8, 9).double() * (torch.rand(8, 9) < 0.4)
    rows = FeatureTable(sparse.csr_array(matrix.numpy())).rows(torch.arange(8).numpy()) if is_sparse else None
    rows = DenseRows(matrix) if rows is None else rows.to(torch.float64)
    weight, bias = (
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((9, widths[0]), widths[:1])
    )
    layers = chain(widths)
    outputs = rows.dense() @ weight + bias
    theirs = layers(outputs.relu()) if len(widths) > 1 else outputs
    theirs = torch.cat([theirs[:, :3], softplus(theirs[:, 3:], threshold=1e9) + 0.1], 1)
    ours = encode_chain(rows, 0.1, (weight, bias, *parameters_of(layers)))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)
    agree(ours, theirs, torch.randn(8, 6, dtype=torch.float64), (weight, bias, *parameters_of(layers)))


def soften(x, floor):
    """The right half alone: rows that are the identity, so that a gradient with respect to x is one of the weight."""
    return encode_chain(DenseRows(torch.eye(len(x), dtype=x.dtype)), floor, (x, torch.zeros(2, dtype=x.dtype)))


def test_softplus_and_its_derivative():
    x = torch.linspace(-30, 60, 181, dtype=torch.float64).view(-1, 1).repeat(1, 2).requires_grad_()
    found = soften(x, 1e-4)
    expected = torch.cat([x[:, :1], softplus(x[:, 1:], threshold=1e9) + 1e-4], 1)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)
    outer = torch.randn_like(x)
    ours, theirs = (torch.autograd.grad((value * outer).sum(), x)[0] for value in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=0)


def test_stddev_never_reaches_zero_nor_infinity():
    x = torch.tensor([[0.0, -1e30], [0.0, 1e30]], requires_grad=True)
    stddev = soften(x, 1e-4)[:, 1]
    assert stddev.tolist() == pytest.approx([1e-4, 1e30])
    (gradient,) = torch.autograd.grad(stddev.sum(), x)
    assert gradient[:, 1].tolist() == [0.0, 1.0]
