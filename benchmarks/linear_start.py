"""Does the linear start shorten training, for links and for groups? Hidden links of Ciao and of a tree, and its groups.

    python benchmarks/linear_start.py [--seeds 1] [--write]

Two models train on the same draws, one from random weights and one from the linear model in closed form. Links are
scored after so many steps by the probability that a hidden one has larger log-odds than a random pair (AUC); groups of
the tree by that of a logistic regression on the means (AUC over five folds). Nothing is chosen here.
"""

import argparse
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from corrvae import CorrelatedVAE
from corrvae.datasets import ciao, tree
from corrvae.graphs import split_edges
from corrvae.model import Posterior
from corrvae.nn import FeatureTable
from corrvae.scoring import make_metric, score
from measure import merged, versions, write_results

STEPS = (0, 50, 100, 200, 400, 800)


class Watch:
    """Score the model while it trains."""

    def __init__(self, X, pairs, are_links, labels) -> None:
        self.table, self.pairs, self.are_links, self.labels, self.found = FeatureTable(X), pairs, are_links, labels, {}

    def start(self, run) -> None:
        """Look at the model before its first step."""
        self.model = run.model
        self.look(0)

    def __call__(self, progress) -> None:
        """Look at the model after some of the steps."""
        if progress.step in STEPS:
            self.look(progress.step)

    def look(self, step: int) -> None:
        """Score links and groups."""
        mean, stddev = self.model.encode(self.table)
        points = Posterior(mean, stddev, tau=self.model.tau_values(mean.shape[1]))
        odds = score(points, points, make_metric("log_odds"), self.pairs)
        self.found[step] = {"links": roc_auc_score(self.are_links, odds)}
        if self.labels is not None:
            regression = LogisticRegression(max_iter=500)
            self.found[step]["groups"] = cross_val_score(regression, mean, self.labels, scoring="roc_auc").mean()


def measure(data: str, init: str, seed: int) -> dict[int, dict[str, float]]:
    """Return the scores after so many steps."""
    generator = np.random.default_rng(seed)
    found = ciao() if data == "ciao" else tree(2000, 500, random_state=seed)
    split = split_edges(found.graph, "random", test=0.1, validation=0.0, random_state=generator)
    others = generator.integers(0, found.graph.n_vertices, (10 * len(split.test), 2))
    others = others[others[:, 0] != others[:, 1]]
    are_links = np.repeat([1, 0], [len(split.test), len(others)])
    watch = Watch(found.features, np.concatenate([split.test, others]), are_links, getattr(found, "labels", None))
    model = CorrelatedVAE(32, init=init, tau="learned_per_dimension", max_steps=max(STEPS), random_state=seed)
    model.fit(found.features, graph=split.train, callbacks=[watch])
    return watch.found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = []
    for seed in range(options.seeds):
        for data in ("tree", "ciao"):
            for init in ("random", "linear"):
                for step, scores in measure(data, init, seed).items():
                    about = {"data": data, "init": init, "seed": seed, "step": step, "command": " ".join(sys.argv)}
                    numbers = {name: round(float(value), 4) for name, value in scores.items()}
                    rows.append({"key": f"{data} {init} {seed} {step}", **about, **numbers})
                    print(data, init, seed, step, numbers, flush=True)
    if options.write:
        write_results(
            "linear_start", merged("linear_start", "key", rows), versions=versions("corrvae", "torch", "scikit-learn")
        )


if __name__ == "__main__":
    main()
