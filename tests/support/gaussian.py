"""The joint posterior along a forest by dense matrices."""

import networkx as nx
import numpy as np
import torch
from torch.distributions import MultivariateNormal, kl_divergence


def dense_prior(n_vertices: int, edges: np.ndarray, tau: torch.Tensor) -> torch.Tensor:
    """Covariance of one latent dimension along a forest, as a function of tau."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n_vertices))
    graph.add_edges_from(np.asarray(edges).tolist())
    distances = np.full((n_vertices, n_vertices), -1)
    for i, reached in nx.all_pairs_shortest_path_length(graph):
        distances[i, list(reached)] = list(reached.values())
    powers = torch.stack([tau**k for k in range(max(1, distances.max() + 1))])
    return torch.where(torch.from_numpy(distances) < 0, torch.zeros_like(tau), powers[np.maximum(distances, 0)])


def dense_posterior(precision, information, tau, edges):
    """Means and covariances by dimension, and KL(q || p0) and log Z summed over dimensions."""
    n_vertices = len(precision)
    means, covariances, kl, log_z = [], [], 0.0, 0.0
    for c in range(precision.shape[1]):
        prior = dense_prior(n_vertices, edges, tau[c])
        covariance = torch.linalg.inv(torch.linalg.inv(prior) + torch.diag(precision[:, c]))
        covariance = 0.5 * (covariance + covariance.T)
        mean = covariance @ information[:, c]
        zero = torch.zeros_like(mean)
        kl = kl + kl_divergence(MultivariateNormal(mean, covariance), MultivariateNormal(zero, prior))
        log_z = log_z + 0.5 * (torch.logdet(covariance) - torch.logdet(prior) + mean @ information[:, c])
        means.append(mean)
        covariances.append(covariance)
    return torch.stack(means, 1), torch.stack(covariances, 2), kl, log_z
