"""The first fit of somebody who tries the library, in a process of its own, for benchmarks/training.py to time."""

import time

import numpy as np

from measure import answer_if_child


def toy(*, threads: int, posterior: str, graph: str, features: str, begun: float) -> dict:
    """Import the library and fit 1,000 rows: with default settings, or 200 steps of a pairwise model."""
    from scipy import sparse

    from corrvae import CorrelatedVAE, CorrelationGraph

    generator = np.random.default_rng(0)
    edges = np.c_[np.arange(1, 1000), generator.integers(0, np.arange(1, 1000))]
    if graph == "cycles":
        edges = np.r_[edges, np.c_[np.arange(500), np.arange(500, 1000)]]
    X, likelihood = generator.normal(size=(1000, 50)), "gaussian"
    if features == "counts":
        X, likelihood = sparse.csr_array(generator.poisson(0.05, size=(1000, 200)) + np.eye(1000, 200)), "multinomial"
        X.data[:] = 1.0
    max_steps = 200 if posterior == "pairwise" else None
    model = CorrelatedVAE(posterior=posterior, likelihood=likelihood, max_steps=max_steps, random_state=0)
    model.fit(X, graph=CorrelationGraph.from_edges(edges))
    return {"seconds": time.monotonic() - begun, "steps": model.n_steps_}


answer_if_child({"toy": toy})
