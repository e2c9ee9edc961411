"""Cluster points: the graph shows which of the differences between them matter.

Every point belongs to one of three groups, which features show a little, and differs in other ways, which they show
much. Most links run within groups. A VAE explains what varies most; a CVAE also what linked points have in common.

Run: python examples/clustering.py
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from corrvae import CorrelatedVAE, CorrelationGraph

N_POINTS, N_GROUPS, N_FEATURES = 450, 3, 40
rng = np.random.default_rng(0)

group = rng.integers(N_GROUPS, size=N_POINTS)
signal = rng.normal(size=(N_GROUPS, N_FEATURES))
nuisance = 2.0 * rng.normal(size=(3, N_FEATURES))


def draw_features(group: np.ndarray) -> np.ndarray:
    """Draw the features of new points of these groups."""
    noise = rng.normal(size=(len(group), N_FEATURES))
    return (0.4 * signal[group] + rng.normal(size=(len(group), 3)) @ nuisance + noise) / 3.0


X = draw_features(group)

# Two links from each point, nine in ten of them to its own group.
edges = set()
for point in range(N_POINTS):
    for _ in range(2):
        own = rng.random() < 0.9
        other = int(rng.choice(np.flatnonzero((group == group[point]) == own)))
        if other != point:
            edges.add((min(point, other), max(point, other)))
graph = CorrelationGraph.from_edges(sorted(edges), n_vertices=N_POINTS)


def print_agreement(name: str, features: np.ndarray) -> None:
    found = KMeans(N_GROUPS, n_init=10, random_state=0).fit_predict(features)
    nmi, ari = normalized_mutual_info_score(group, found), adjusted_rand_score(group, found)
    print(f"  {name:9} NMI {nmi:.2f}, ARI {ari:.2f}")


settings = {"hidden": (100,), "random_state": 0}
vae = CorrelatedVAE(6, **settings).fit(X)
cvae = CorrelatedVAE(6, tau=0.9, **settings).fit(X, graph=graph)
print("agreement of k-means with the true groups")
print_agreement("features", X)
print_agreement("VAE", vae.embedding_)
print_agreement("CVAE_ind", cvae.embedding_)

# New points have no edges and need none: each goes to the group that most of its neighbours belong to.
new_group = rng.integers(N_GROUPS, size=200)
neighbors = cvae.kneighbors(draw_features(new_group), n_neighbors=9).ids  # ids are row numbers here
found = [np.bincount(near).argmax() for near in group[neighbors]]
print(f"new points assigned to their group: {np.mean(found == new_group):.2f}")
