"""Find wrong edges: points in clusters, and 30 % of random edges added to the edges within them.

    python examples/adaptive.py [picture.svg]

Prints how well conductances tell added edges from given ones (AUC), and the weights of both.
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

from corrvae import CorrelatedVAE, CorrelationGraph

generator = np.random.default_rng(0)
n_clusters, size, n_features = 20, 30, 30
cluster = np.repeat(np.arange(n_clusters), size)
centers = 0.7 * generator.normal(size=(n_clusters, n_features))
X = (centers[cluster] + generator.normal(size=(len(cluster), n_features))).astype(np.float32)

pairs = np.stack(np.triu_indices(len(cluster), 1), axis=1)
within = cluster[pairs[:, 0]] == cluster[pairs[:, 1]]
given = pairs[within][generator.random(within.sum()) < 0.15]
others = pairs[~within]
added = others[generator.choice(len(others), int(0.3 * len(given)), replace=False)]
edges = np.concatenate([given, added])
order = np.lexsort(edges.T[::-1])
graph = CorrelationGraph(edges[order], len(cluster))
is_added = (np.arange(len(edges)) >= len(given))[order]

model = CorrelatedVAE(8, forests="adaptive", max_epochs=60, random_state=0).fit(X, graph=graph)
print(f"AUC of conductances: {roc_auc_score(is_added, -model.conductances_):.3f}")
print(f"mean weight: given {model.weights_[~is_added].mean():.3f}, added {model.weights_[is_added].mean():.3f}")

for path in [name for name in sys.argv[1:] if name.endswith(".svg")]:
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axes = figure.subplots()
    bins = np.linspace(*np.log10([model.conductances_.min(), model.conductances_.max()]), 40)
    for chosen, name in ((~is_added, "given edges"), (is_added, "added edges")):
        axes.hist(np.log10(model.conductances_[chosen]), bins, alpha=0.6, label=name)
    axes.set(xlabel="log10 of the conductance", ylabel="edges")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
