"""Predict links: find who else in a network of friends is likely to be linked.

Edges are held out for a test, the model is fitted without them, and each held-out edge is ranked among all points that
are not known neighbours. Graph heuristics and a plain VAE are ranked the same way.

Run: python examples/link_prediction.py
"""

import numpy as np
import pandas as pd

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments.links import row_scores, score_links, score_rows
from corrvae.graphs import split_edges
from corrvae.scoring import make_metric

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

settings = {"likelihood": "poisson", "hidden": (100,), "max_steps": 400, "random_state": 0}
vae = CorrelatedVAE(8, **settings).fit(items)
cvae = CorrelatedVAE(8, tau=0.9, **settings).fit(items, graph=split.train)

print("mean reciprocal rank of the held-out links")
for name in ("degree", "adamic_adar", "personalized_pagerank"):
    print(f"  {name:21} {score_rows(row_scores(name, split.train), split.test, split.train)['mrr']:.3f}")
for name, model in (("VAE", vae), ("CVAE_ind", cvae)):
    scores = score_links(model.posterior(), make_metric("log_odds"), split.test, split.train)
    print(f"  {name:21} {scores['mrr']:.3f}")

# The probability of a link, learned from validation edges, which training has not seen either.
calibration = cvae.calibrate_links(graph.ids[split.validation], random_state=0)
new = cvae.kneighbors(ids=names[0], n_neighbors=3, metric="log_odds", exclude=split.train)
chances = cvae.score_pairs([(names[0], other) for other in new.ids], metric="log_odds", probability=calibration)
for other, probability in zip(new.ids, chances.probabilities, strict=True):
    print(f"{names[0]} and {other}: {probability:.2f}")
