"""Predict links: who else in a network of friends is likely to be linked.

Edges are held out for a test, the model is fitted without them, and each held-out edge is ranked among all points that
are not known neighbours. Two graph heuristics and a plain VAE stand beside it.

Run: python examples/link_prediction.py
"""

import numpy as np
import pandas as pd

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.graphs import split_edges
from corrvae.tasks import adamic_adar_scores, degree_scores, rank_links, score_links

N_PEOPLE, N_ITEMS, N_FRIENDS = 500, 80, 4
rng = np.random.default_rng(0)

# Four tastes decide what people have; only the first two decide who befriends whom.
taste = rng.normal(size=(N_PEOPLE, 4))
rate = np.exp(taste @ rng.normal(size=(4, N_ITEMS)) - 1.5)
liking = -3.0 * np.square(taste[:, None, :2] - taste[None, :, :2]).sum(axis=2) + rng.gumbel(size=(N_PEOPLE, N_PEOPLE))
np.fill_diagonal(liking, -np.inf)
friends = np.argsort(-liking, axis=1)[:, :N_FRIENDS]
pairs = {(min(i, j), max(i, j)) for i in range(N_PEOPLE) for j in friends[i].tolist()}
names = [f"person {i}" for i in range(N_PEOPLE)]
items = pd.DataFrame(rng.poisson(rate), index=names, columns=[f"item {i}" for i in range(N_ITEMS)])
graph = CorrelationGraph.from_edges([(names[i], names[j]) for i, j in sorted(pairs)], vertices=names)

# The parts are disjoint; the training graph keeps every vertex.
split = split_edges(graph, "random", test=0.1, validation=0.1, random_state=0)
test, validation = graph.ids[split.test], graph.ids[split.validation]


def mean_reciprocal_rank(model: CorrelatedVAE) -> float:
    """Rank each end of a test edge for the other end, known neighbours left out."""
    both_ways = np.concatenate([test, test[:, ::-1]])
    return float((1 / model.rank_pairs(both_ways, exclude=split.train, metric="log_odds").ranks).mean())


settings = {"likelihood": "poisson", "normalize": "log1p", "hidden": (100,), "max_steps": 600, "random_state": 0}
vae = CorrelatedVAE(8, **settings).fit(items)
cvae = CorrelatedVAE(8, tau=0.9, **settings).fit(items, graph=split.train)
print("mean reciprocal rank of the held-out links")
print(f"  degree        {score_links(rank_links(degree_scores(split.train), split)).mrr:.3f}")
print(f"  Adamic-Adar   {score_links(rank_links(adamic_adar_scores(split.train), split)).mrr:.3f}")
print(f"  VAE           {mean_reciprocal_rank(vae):.3f}")
print(f"  CVAE_ind      {mean_reciprocal_rank(cvae):.3f}")

# The probability of a link, learned from validation edges, which training has not seen either.
calibration = cvae.calibrate_links(validation, metric="log_odds", random_state=0)
new = cvae.kneighbors(names[0], n_neighbors=3, metric="log_odds", exclude=split.train)
chances = cvae.score_pairs([(names[0], other) for other in new.ids], metric="log_odds", probability=calibration)
for other, probability in zip(new.ids, chances.probabilities, strict=True):
    print(f"{names[0]} and {other}: {probability:.2f}")
