"""The objectives over free posterior parameters, with a linear-Gaussian decoder whose log p(x) is known."""

from dataclasses import dataclass

import numpy as np
import torch

from corrvae.model import PairPrior
from corrvae.model.objectives import edge_term, singleton_kl
from corrvae.nn import Marginals


@dataclass(frozen=True)
class LinearGaussian:
    """x_i = decoder z_i + noise, latent points joined by edges with weights."""

    x: np.ndarray
    decoder: np.ndarray
    noise: float
    edges: np.ndarray
    weights: np.ndarray
    tau: float

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Shapes of means, log standard deviations and pre-activations."""
        n_vertices, n_components = len(self.x), self.decoder.shape[1]
        return (n_vertices, n_components), (n_vertices, n_components), (len(self.edges), n_components)

    def objective(self, mean: torch.Tensor, log_stddev: torch.Tensor, a: torch.Tensor | None) -> torch.Tensor:
        """Sum over vertices and edges, the expected log-likelihood in closed form; `a` None for independent ones."""
        x, decoder = torch.from_numpy(self.x), torch.from_numpy(self.decoder)
        marginals = Marginals.of(mean, log_stddev.exp())
        error = (x - mean @ decoder.T).square().sum() + (marginals.stddev.square() * decoder.square().sum(0)).sum()
        fit = -0.5 * error / self.noise**2 - 0.5 * x.numel() * np.log(2 * np.pi * self.noise**2)
        prior = PairPrior.of(self.tau, mean.shape[1], torch.float64)
        terms = edge_term(marginals, torch.from_numpy(self.edges), prior, a)
        return fit - singleton_kl(marginals).sum() - (torch.from_numpy(self.weights) * terms).sum()

    def random(self, seed: int, scale: float) -> list[torch.Tensor]:
        """Random parameters."""
        generator = torch.Generator().manual_seed(seed)
        return [torch.randn(shape, generator=generator, dtype=torch.float64) * scale for shape in self.shapes]

    def maximum(self, *, correlated: bool) -> float:
        """The objective at its maximum."""
        parameters = [part.requires_grad_() for part in self.random(0, 0.1)]
        used = parameters if correlated else parameters[:2]
        optimizer = torch.optim.LBFGS(
            used, max_iter=2000, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            value = -self.objective(*parameters[:2], parameters[2] if correlated else None)
            value.backward()
            return value

        optimizer.step(loss)
        return -float(loss().detach())
