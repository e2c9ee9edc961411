"""Cluster points: the graph tells which of the differences between them matter.

Every point belongs to one of three groups, which features show a little, and differs in other ways, which they show
much. Links run within groups, mostly. An auto-encoder explains what varies most; with the graph, what links have in
common.

Run: python examples/clustering.py
"""

import numpy as np
from sklearn.cluster import KMeans

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.tasks import adjusted_rand_index, normalised_mutual_information

N_POINTS, N_GROUPS, N_FEATURES = 450, 3, 40
rng = np.random.default_rng(0)

group = rng.integers(N_GROUPS, size=N_POINTS)
belonging = rng.normal(size=(N_GROUPS, N_FEATURES))
otherwise = 2.0 * rng.normal(size=(3, N_FEATURES))


def look_at(group: np.ndarray) -> np.ndarray:
    """Draw the features of new points of these groups."""
    noise = rng.normal(size=(len(group), N_FEATURES))
    return (0.7 * belonging[group] + rng.normal(size=(len(group), 3)) @ otherwise + noise) / 3.0


X = look_at(group)

# Two links from each point, nine in ten of them to its own group.
edges = set()
for point in range(N_POINTS):
    for _ in range(2):
        own = rng.random() < 0.9
        other = int(rng.choice(np.flatnonzero((group == group[point]) == own)))
        if other != point:
            edges.add((min(point, other), max(point, other)))
graph = CorrelationGraph.from_edges(sorted(edges), n_vertices=N_POINTS)


def describe(name: str, features: np.ndarray) -> None:
    found = KMeans(N_GROUPS, n_init=10, random_state=0).fit_predict(features)
    agreement = normalised_mutual_information(group, found), adjusted_rand_index(group, found)
    print(f"  {name:9} NMI {agreement[0]:.2f}, ARI {agreement[1]:.2f}")


settings = {"hidden": (100,), "max_steps": 800, "random_state": 0}
vae = CorrelatedVAE(6, **settings).fit(X)
cvae = CorrelatedVAE(6, tau=0.9, **settings).fit(X, graph=graph)
print("agreement of k-means with the true groups")
describe("features", X)
describe("VAE", vae.embedding_)
describe("CVAE_ind", cvae.embedding_)

# New points have no edges, and need none: each goes to the group that most of its neighbours belong to.
new_group = rng.integers(N_GROUPS, size=200)
neighbours = cvae.kneighbors(look_at(new_group), n_neighbors=9).ids.astype(int)
found = [np.bincount(near).argmax() for near in group[neighbours]]
print(f"new points whose neighbours are of their group: {np.mean(found == new_group):.0%}")
