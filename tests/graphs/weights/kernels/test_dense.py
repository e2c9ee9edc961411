import networkx as nx
import numpy as np
import pytest

from corrvae.graphs.weights.kernels import dense
from support.elimination import conductance_matrix, matrix_resistances
from support.resistance import from_networkx

SIZES = [2, 5, 63, 64, 65, 130]  # around the blocks of the loops


def core_of(k: int, seed: int = 1) -> np.ndarray:
    return conductance_matrix(
        from_networkx(nx.gnp_random_graph(k, 0.9, seed=3) if k > 5 else nx.complete_graph(k), seed)
    )


@pytest.mark.parametrize("k", SIZES)
def test_the_normalised_laplacian_is_shifted_by_its_null_vector(k):
    conductances = core_of(k)
    core, scale = conductances.copy(), np.empty(k)
    dense.normalised_laplacian(core, scale)
    degrees = conductances.sum(axis=1)
    root = np.diag(degrees**-0.5)
    null = np.sqrt(degrees / degrees.sum())
    expected = root @ (np.diag(degrees) - conductances) @ root + np.outer(null, null)
    assert np.allclose(scale, degrees**-0.5)
    assert np.allclose(np.tril(core), np.tril(expected), atol=1e-14)
    eigenvalues = np.linalg.eigvalsh(core, UPLO="L")
    assert eigenvalues.min() > 0
    assert eigenvalues.max() <= 2 + 1e-12


@pytest.mark.parametrize("k", SIZES)
def test_resistances_come_from_the_inverse(k):
    conductances = core_of(k)
    core, scale = conductances.copy(), np.empty(k)
    dense.normalised_laplacian(core, scale)
    full = np.tril(core) + np.tril(core, -1).T
    inverse = np.tril(np.linalg.inv(full))
    dense.resistances_from_inverse(inverse, scale)
    assert np.allclose(inverse, matrix_resistances(conductances), rtol=1e-9, atol=1e-14)
