import numpy as np
import pytest
import torch

from corrvae import inference
from corrvae.inference import PairEvaluator, infer_posterior, recall_posterior
from corrvae.model import CorrelatedModel
from corrvae.nn import Decoder, DenseRows, Encoder, FeatureTable, InputTransform, PairPerceptron, make_likelihood

X = np.random.default_rng(0).poisson(0.5, (11, 6)).astype(np.float32)


def make(pairwise: bool = True, pair_inputs: InputTransform | None = None) -> CorrelatedModel:
    torch.manual_seed(0)
    networks = Encoder(6, 2), Decoder(2, 6), make_likelihood("poisson", 6)
    pair_network = PairPerceptron(6, 2, hidden=(9,)) if pairwise else None
    inputs = InputTransform("log1p", dropout=0.5)
    return CorrelatedModel(*networks, pair_network=pair_network, inputs=inputs, pair_inputs=pair_inputs)


@pytest.mark.parametrize("pair_normalize", [None, "l2"])
@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_pieces_make_the_whole(monkeypatch, limit, pair_normalize):
    monkeypatch.setattr(inference, "_ROWS", 4)
    monkeypatch.setattr(inference, "_PAIRS", 3)
    model = make(pair_inputs=pair_normalize and InputTransform(pair_normalize, dropout=0.5))
    posterior = infer_posterior(model, FeatureTable(X, density_limit=limit))
    assert model.training
    model.eval()
    rows = model.inputs(DenseRows(torch.from_numpy(X)))
    marginals = model.encoder(rows)
    np.testing.assert_allclose(posterior.mean, marginals.mean.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(posterior.stddev, marginals.stddev.detach().numpy(), rtol=1e-5)
    pairs = np.random.default_rng(1).permuted(np.tile(np.arange(11), (8, 1)), axis=1)[:, :2]
    if model.pair_inputs is not None:
        rows = model.pair_inputs(DenseRows(torch.from_numpy(X)))
    block = model.pair_network.block(*[model.pair_network.prepare(rows)] * 2).detach().numpy()
    expected = np.tanh(block[pairs[:, 0], pairs[:, 1]])
    np.testing.assert_allclose(posterior.correlation(pairs), expected, rtol=1e-5, atol=1e-6)
    assert posterior.correlation(pairs[:0]).shape == (0, 2)


def test_a_model_without_pair_network_is_independent():
    posterior = infer_posterior(make(False), FeatureTable(X))
    assert not posterior.correlation(np.array([[0, 1]])).any()
    with pytest.raises(ValueError, match="no pair network"):
        PairEvaluator(make(False), FeatureTable(X))


def test_a_posterior_that_is_known_is_the_one_inferred():
    model, table, ids = make(), FeatureTable(X), np.array([f"v{row}" for row in range(11)], dtype=object)
    inferred = infer_posterior(model, table, ids)
    known = recall_posterior(model, inferred.mean, inferred.stddev, table, ids)
    np.testing.assert_array_equal(known.correlation([("v3", "v5")]), inferred.correlation([(3, 5)]))
    np.testing.assert_array_equal(inferred.correlation([("v3", "v5")]), inferred.correlation([(3, 5)]))
    without = recall_posterior(model, inferred.mean, inferred.stddev, None, ids)
    with pytest.raises(ValueError, match="store_features=False"):
        without.correlation([(3, 5)])
