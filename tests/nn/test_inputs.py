import numpy as np
import pytest
import torch
from hypothesis import given
from sklearn.preprocessing import normalize

from corrvae.nn import DenseRows, InputTransform
from support.rows import matrices, sparse_rows
from support.unchecked import unchecked


@given(matrices())
def test_normalisations_agree_with_their_definitions(matrix):
    X = matrix.toarray()
    expected = {
        "raw": X,
        "binary": (X != 0).astype(float),
        "l2": normalize(X),
        "log1p": np.sign(X) * np.log1p(np.abs(X)),
    }
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


def test_bad_parameters_are_refused():
    with unchecked(), pytest.raises(ValueError, match="'binary', 'l2'"):
        InputTransform("l3")
    with pytest.raises(ValueError, match="dropout"):
        InputTransform(dropout=1.0)
