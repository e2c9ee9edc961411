"""Asks from which density on a matrix product is faster than gathering over the non-zeros.

Forward and backward through the first layer for one step's rows, at the widths of encoder and pair perceptron.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
from scipy import sparse

from corrvae.nn import FeatureTable

N_ROWS = 576  # 64 vertices and the ends of 256 edges


def best(step: Callable[[], None], repeats: int = 15) -> float:
    step()
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        step()
        times.append(perf_counter() - begin)
    return 1e3 * min(times)


def measure(n_columns: int, density: float, width: int) -> tuple[float, float]:
    X = sparse.random_array((2_000, n_columns), density=density, format="csr", dtype=np.float32, rng=0)
    weight, bias = torch.randn(n_columns, width).requires_grad_(), torch.zeros(width).requires_grad_()
    gradient, picked = torch.randn(N_ROWS, width), np.arange(N_ROWS)

    def step(table: FeatureTable) -> None:
        weight.grad = bias.grad = None
        table.rows(picked).affine(weight, bias).backward(gradient)

    gathered, dense = FeatureTable(X, density_limit=1.0), FeatureTable(X, density_limit=0.0)
    return best(lambda: step(gathered)), best(lambda: step(dense))


def main() -> None:
    torch.set_num_threads(2)
    print(f"{'columns':>8} {'density':>8} {'width':>6} {'gather ms':>10} {'product ms':>11} {'ratio':>6}")
    for n_columns in (679, 3_000):
        for density in (0.01, 0.025, 0.1, 0.2, 0.3, 0.5):
            for width in (300, 2_000):
                gathered, dense = measure(n_columns, density, width)
                sizes, ratio = f"{n_columns:>8} {density:>8.1%} {width:>6}", dense / gathered
                print(f"{sizes} {gathered:>10.2f} {dense:>11.2f} {ratio:>6.1f}")


if __name__ == "__main__":
    main()
