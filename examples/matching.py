"""Match two lists: customers of two shops, some of whom are known to be the same person.

The shops sell different things, so comparing baskets item by item is useless. The known pairs are the edges of the
graph; from them the model learns which items of one shop go with which of the other.

Run: python examples/matching.py
"""

import numpy as np
import pandas as pd

from corrvae import CorrelatedVAE, CorrelationGraph

N_PEOPLE, N_KNOWN, N_ITEMS = 500, 400, 60
rng = np.random.default_rng(0)

# Everybody has a taste; each shop has items that please some tastes more than others.
taste = rng.normal(size=(N_PEOPLE, 3))


def shop(prefix: str) -> tuple[np.ndarray, list[str]]:
    """Draw what each person buys in a shop, and name its customers."""
    wishes = 1.5 * taste @ rng.normal(size=(3, N_ITEMS)) / np.sqrt(3)
    share = np.exp(wishes) / np.exp(wishes).sum(axis=1, keepdims=True)
    return rng.multinomial(rng.integers(40, 120, N_PEOPLE), share), [f"{prefix}{person}" for person in range(N_PEOPLE)]


left_counts, left_ids = shop("a")
right_counts, right_ids = shop("b")

# One table for both lists: the columns of the first shop, then those of the second.
nothing = np.zeros_like(left_counts)
counts = np.vstack([np.hstack([left_counts, nothing]), np.hstack([nothing, right_counts])])
X = pd.DataFrame(counts, index=left_ids + right_ids, columns=[f"item {i}" for i in range(2 * N_ITEMS)])

# Known pairs are edges; the others are to be found.
known = [(f"a{person}", f"b{person}") for person in range(N_KNOWN)]
graph = CorrelationGraph.from_edges(known, vertices=left_ids + right_ids)
unknown_left, unknown_right = left_ids[N_KNOWN:], right_ids[N_KNOWN:]


def share_found(model: CorrelatedVAE) -> float:
    """Match those whose pair is not known, one to one, and count how many are right."""
    matches = model.match(unknown_left, unknown_right, metric="log_odds")
    return float(np.mean([left[1:] == right[1:] for left, right in matches.id_pairs]))


settings = {"hidden": (100,), "max_steps": 400, "random_state": 0}
vae = CorrelatedVAE(8, **settings).fit(X)  # mostly zeros: likelihood="auto" chooses the multinomial
cvae = CorrelatedVAE(8, **settings).fit(X, graph=graph)
print(f"{len(unknown_left)} customers on each side; by chance {1 / len(unknown_left):.3f} are matched correctly")
print(f"without the known pairs (VAE)     {share_found(vae):.3f}")
print(f"with the known pairs (CVAE_ind)   {share_found(cvae):.3f}")

best = cvae.kneighbors(ids=unknown_left[0], n_neighbors=3, metric="log_odds", candidates=unknown_right)
print(f"the best three for {unknown_left[0]}: {', '.join(best.ids)}, with log-odds {best.scores.round(1)}")
