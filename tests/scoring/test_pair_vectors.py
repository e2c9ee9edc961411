import numpy as np
import pytest
import torch

from corrvae.nn import DenseRows, FeatureTable, InputTransform
from corrvae.scoring import pair_vectors
from corrvae.scoring.pair_vectors import PairVectors
from support.training import small_matrix, small_model

X = small_matrix(11)


@pytest.mark.parametrize("kind", ["perceptron", "bilinear", "metric"])
@pytest.mark.parametrize("memory", [0, 2**20])
def test_vectors_are_what_the_network_prepares(monkeypatch, kind, memory):
    monkeypatch.setattr(pair_vectors, "_ROWS", 4)
    model = small_model(kind, dropout=0.5)
    if memory:
        model.pair_inputs = InputTransform("l2", dropout=0.5)
    vectors = PairVectors(model, FeatureTable(X), memory=memory)
    assert len(vectors) == 11
    with torch.no_grad():
        model.eval()
        read = (model.pair_inputs if memory else model.inputs)(DenseRows(torch.from_numpy(X)))
        expected = model.pair_network.prepare(DenseRows(model.encoder(read).mean) if kind == "metric" else read)
        model.train()
    rows = np.array([3, 3, 10, 0, 7, 1])
    torch.testing.assert_close(vectors.at(rows), expected[rows])
    some = vectors.take(np.array([9, 2, 4]))
    assert len(some) == 3
    torch.testing.assert_close(some.at(np.array([1, 0])), expected[[2, 9]])
    assert model.training


def test_a_model_without_pair_network_has_none():
    with pytest.raises(ValueError, match="no pair network"):
        PairVectors(small_model(), FeatureTable(X))
