import numpy as np
import pytest
import torch

from corrvae.scoring.correlated.exact import exact_pairs
from corrvae.scoring.correlated.sides import vectors_of
from support.correlated import NETWORKS, make_model, make_points, random_rows


@pytest.mark.parametrize("network", NETWORKS)
def test_it_is_the_network_in_float64_pair_by_pair(network):
    model = make_model(network)
    vectors = vectors_of(make_points(model, random_rows(12))).at(np.arange(12)).numpy()
    rows, columns = np.random.default_rng(0).integers(0, 12, (2, 30))
    pairs = exact_pairs(model.pair_network)
    found = pairs.pre_activation(vectors, vectors, rows, columns)
    assert found.dtype == np.float64
    turned = pairs.pre_activation(vectors, vectors, columns, rows)
    np.testing.assert_array_equal(turned, found)
    np.testing.assert_array_equal(pairs.pre_activation(vectors, vectors, rows[7:8], columns[7:8])[0], found[7])
    assert next(model.pair_network.parameters()).dtype == torch.float32
    with torch.no_grad():
        ends = torch.from_numpy(rows), torch.from_numpy(columns)
        wanted = model.pair_network.double().pre_activation(torch.from_numpy(vectors).double(), *ends)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12, atol=1e-12)
