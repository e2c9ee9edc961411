import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import sparse
from sklearn.preprocessing import normalize
from torch.nn.functional import linear

from corrvae.nn import NORMALIZATIONS, DenseRows, InputTransform, RowsLinear, perceptron
from corrvae.nn.layers import check_widths, uniform_parameter
from corrvae.nn.likelihoods.multinomial import Multinomial
from support.rows import matrices, sparse_rows


def test_rows_linear_is_a_linear_layer():
    layer, x = RowsLinear(5, 3), torch.rand(4, 5)
    torch.testing.assert_close(layer(DenseRows(x)), linear(x, layer.weight.T, layer.bias))


def test_initial_weights_fill_torchs_range():
    torch.manual_seed(0)
    drawn = uniform_parameter((200, 200), 400).detach()
    assert float(drawn.abs().max()) <= 1 / 20
    assert float(drawn.std()) == pytest.approx(1 / 20 / 3**0.5, rel=0.02)


def test_perceptron_rectifies_between_layers():
    torch.manual_seed(0)
    network, x = perceptron((2, 8, 1)), torch.randn(5, 2)
    first, last = network[0], network[2]
    torch.testing.assert_close(network(x), last(first(x).clamp(min=0)))
    after = perceptron((8, 1), after_hidden=True)
    hidden = torch.randn(5, 8)
    torch.testing.assert_close(after(hidden.clone()), after[1](hidden.clamp(min=0)))
    assert len(perceptron((8,), after_hidden=True)) == 0


def test_widths_must_be_positive():
    assert check_widths("hidden", [3, 2]) == (3, 2)
    with pytest.raises(ValueError, match="hidden must hold positive integers"):
        check_widths("hidden", (3, 0))


@given(matrices())
def test_normalisations_agree_with_their_definitions(matrix):
    X = matrix.toarray()
    expected = {
        "none": X,
        "binary": (X != 0).astype(float),
        "l2": normalize(X),
        "log1p": np.sign(X) * np.log1p(np.abs(X)),
    }
    assert expected.keys() == NORMALIZATIONS.keys()
    for name, values in expected.items():
        for rows in (sparse_rows(matrix), DenseRows(torch.from_numpy(X))):
            np.testing.assert_allclose(InputTransform(name)(rows).dense().numpy(), values, atol=1e-12)


def test_dropout_keeps_the_mean_and_only_works_in_training():
    rows = DenseRows(torch.ones(200, 200))
    transform = InputTransform(dropout=0.3)
    dropped = transform(rows, torch.Generator().manual_seed(0)).dense()
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.01)
    again = transform(rows, torch.Generator().manual_seed(0)).dense()
    assert again.equal(dropped)
    assert transform.eval()(rows).dense().equal(rows.dense())


def test_dropout_leaves_torchs_own_generator_alone():
    before = torch.get_rng_state()
    InputTransform(dropout=0.5)(DenseRows(torch.ones(4, 4)), torch.Generator().manual_seed(0))
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_masked_rows_are_cut_in_what_is_read_and_what_is_explained(as_sparse):
    counts = np.random.default_rng(0).poisson(1.0, (500, 40)).astype(np.float32)
    rows = sparse_rows(sparse.csr_array(counts)) if as_sparse else DenseRows(torch.from_numpy(counts.copy()))
    draw = lambda: torch.Generator().manual_seed(0)  # noqa: E731
    read, target = InputTransform("l2", masking=0.8).eval().split(rows, draw())
    explained = torch.where(target.observed, target.values, 0.0)
    kept = rows.map(lambda values: torch.where(target.observed, 0.0, values))
    assert target.values.equal(explained)
    assert torch.equal(kept.values + target.values, rows.values)
    torch.testing.assert_close(read.dense(), InputTransform("l2")(kept).dense())
    # the share of each row is uniform below 0.8: its mean is 0.4, its standard deviation 0.8 / 12^(1/2)
    shares = target.sums(lambda values: (values != 0).float()) / rows.sums(lambda values: (values != 0).float())
    assert float(shares.mean()) == pytest.approx(0.4, abs=0.03)
    assert float(shares.std()) == pytest.approx(0.8 / 12**0.5, abs=0.05)
    # a multinomial likelihood explains what is hidden among what is not read
    outputs = torch.randn(500, 40, generator=draw())
    found = Multinomial(40).log_prob(outputs, target)
    is_read = torch.from_numpy(counts) > 0 if as_sparse else torch.ones(500, 40, dtype=torch.bool)
    hidden = explained if not as_sparse else target.dense()
    is_read &= ~(hidden > 0) if as_sparse else ~target.observed
    expected = (outputs.masked_fill(is_read, -torch.inf).log_softmax(1).masked_fill(hidden == 0, 0.0) * hidden).sum(1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    unmasked = InputTransform("l2")
    assert unmasked.split(rows)[1] is rows


def test_what_is_missing_stays_missing_from_what_is_explained():
    values = torch.full((200, 9), 2.0)
    values[::2, 3] = torch.nan
    _, target = InputTransform(masking=0.9).split(DenseRows(values).mask_missing(), torch.Generator().manual_seed(0))
    assert not target.observed[::2, 3].any()
    assert target.observed[1::2, 3].any()


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="'binary', 'l2', 'log1p', 'none'"):
        InputTransform("l3")
    with pytest.raises(ValueError, match="dropout"):
        InputTransform(dropout=1.0)
