"""Does matching on the embedding recover a known effect? Beside matching on features, a propensity score and PCA.

    python benchmarks/effects.py [--first 0] [--last 100] [--write]

Each data set has 600 people. Two latent traits decide who is treated and what the outcome is. They are seen only
through 400 sparse, overdispersed counts that depend on them nonlinearly, and through a graph that joins people with
similar traits (a share of its edges is random) and knows nothing of the treatment. The effect is 1 for everybody. Every
method matches the treated one to one with others; what counts is how often its 95 % interval has the truth in it.

"truth" matches on the traits themselves. Settings were chosen on data sets from 1000 on.
"""

import argparse
import sys
import time
import warnings

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from corrvae import CorrelatedVAE, CorrelationGraph
from corrvae.experiments.models import point_posterior
from corrvae.scoring import Effect, match
from measure import merged, versions, write_results

EFFECT = 1.0


def draw(seed: int, n: int = 600, n_features: int = 400) -> tuple[np.ndarray, CorrelationGraph, np.ndarray, ...]:
    """Return features, graph, who is treated, outcome, traits."""
    rng = np.random.default_rng(seed)
    traits = rng.normal(size=(n, 2))
    treated = rng.random(n) < 1 / (1 + np.exp(1.6 - traits[:, 0]))
    slopes = 1.04 * rng.normal(size=(2, n_features)) * (rng.random(n_features) < 0.5)
    rates = np.exp(rng.normal(-1.5, 0.7, n_features) + np.tanh(traits) @ slopes)
    X = rng.negative_binomial(2, 2 / (2 + rates))
    alike = np.square(traits[:, None] - traits).sum(axis=2).argsort(axis=1)[:, 1:21]
    pairs = [(i, rng.choice(alike[i])) for i in range(n) for _ in range(3)]
    pairs += [tuple(rng.choice(n, 2, replace=False)) for _ in range(n // 5)]
    edges = np.unique(np.sort(np.array(pairs), axis=1), axis=0)
    outcome = EFFECT * treated + 2 * np.sin(traits[:, 0]) + traits[:, 1] + rng.normal(size=n)
    return X, CorrelationGraph(edges, n), treated, outcome, traits


def estimate(seed: int) -> dict[str, Effect]:
    """Return the effect by every method."""
    X, graph, treated, outcome, traits = draw(seed)
    sides = np.flatnonzero(treated), np.flatnonzero(~treated)
    logs = StandardScaler().fit_transform(np.log1p(X))
    raw = point_posterior(logs)
    plain = match(raw, *sides, "mean_distance")
    nearest = np.median(plain.scores)  # a caliper in deviations that is usual elsewhere leaves nobody
    propensity = LogisticRegressionCV(
        Cs=[1e-4, 1e-3, 1e-2], l1_ratios=(0.0,), use_legacy_attributes=False, scoring="neg_log_loss", max_iter=300
    ).fit(logs, treated)
    principal = point_posterior(PCA(4, random_state=0).fit_transform(np.log1p(X)))
    model = CorrelatedVAE(4, hidden=(), max_steps=400, random_state=0).fit(X, graph=graph)
    options = {"metric": "mean_distance", "caliper": "0.3sd"}
    return {
        "features": plain.effect(outcome),
        "features, the nearer half": match(raw, *sides, "mean_distance", caliper=nearest).effect(outcome),
        "propensity score of the features": match(
            point_posterior(propensity.decision_function(logs)[:, None]), *sides, "mean_distance", caliper="0.2sd"
        ).effect(outcome),
        "PCA": match(principal, *sides, **options).effect(outcome, covariates="embedding"),
        "corrvae, no caliper": model.match(*sides, metric="mean_distance").effect(outcome),
        "corrvae": model.match(*sides, **options).effect(outcome),
        "corrvae, bias-corrected": model.match(*sides, **options).effect(outcome, covariates="embedding"),
        "truth": match(point_posterior(traits), *sides, **options).effect(outcome, covariates="embedding"),
    }


def unmatched(seed: int) -> dict[str, object]:
    """Return the difference of means."""
    _, _, treated, outcome, _ = draw(seed)
    test = stats.ttest_ind(outcome[treated], outcome[~treated], equal_var=False)
    low, high = test.confidence_interval(0.95)
    return {"estimate": (low + high) / 2, "low": low, "high": high, "n_left": int(treated.sum())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=100)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    for seed in range(options.first, options.last):
        begun = time.process_time()
        found = {"difference of means": unmatched(seed)} | {
            name: {"estimate": e.estimate, "low": e.interval[0], "high": e.interval[1], "n_left": e.n_left}
            for name, e in estimate(seed).items()
        }
        about = {"seed": seed, "command": " ".join(sys.argv), "seconds": round(time.process_time() - begun, 1)}
        for method, row in found.items():
            numbers = {name: round(float(value), 4) for name, value in row.items()}
            rows.append({"key": f"{seed} {method}", "method": method, **about, **numbers})
        print(seed, {method: round(float(row["estimate"]), 2) for method, row in found.items()}, flush=True)
        if options.write and (seed % 10 == 9 or seed == options.last - 1):
            write_results(
                "effects", merged("effects", "key", rows), versions=versions("corrvae", "torch", "scikit-learn")
            )
    table = pd.DataFrame(merged("effects", "key", []) if options.write else rows)
    table["covered"] = (table.low <= EFFECT) & (table.high >= EFFECT)
    table["width"], table["bias"] = table.high - table.low, table.estimate - EFFECT
    columns = {"seed": "count", "covered": "sum", "bias": "mean", "width": "mean", "n_left": "mean"}
    print(table.groupby("method", sort=False).agg(columns).round(3).rename(columns={"seed": "data sets"}).to_string())


if __name__ == "__main__":
    main()
