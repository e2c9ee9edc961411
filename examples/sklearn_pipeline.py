"""Use the model inside scikit-learn: a pipeline, a grid search that slices the graph with the rows, a classifier.

Run: python examples/sklearn_pipeline.py
"""

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corrvae import CorrelatedVAE, CorrelationGraph

N_PAIRS, N_FEATURES = 200, 30
rng = np.random.default_rng(0)

# Two noisy observations of each of 200 things, joined by an edge. The label is a property of the thing.
thing = np.repeat(rng.normal(size=(N_PAIRS, 4)), 2, axis=0)
X = thing @ rng.normal(size=(4, N_FEATURES)) + 3.0 * rng.normal(size=(2 * N_PAIRS, N_FEATURES))
label = (thing[:, 0] > 0).astype(int)
graph = CorrelationGraph.from_edges(np.arange(2 * N_PAIRS).reshape(N_PAIRS, 2), n_vertices=2 * N_PAIRS)

# With metadata routing, `graph=` reaches the model through pipelines and searches. Parameters of a family have names
# such as correlatedvae__family__gamma_mi.
sklearn.set_config(enable_metadata_routing=True)
pipeline = make_pipeline(StandardScaler(), CorrelatedVAE(4, hidden=(50,), max_steps=100, random_state=0))
search = GridSearchCV(
    pipeline,
    {"correlatedvae__tau": [0.5, 0.9, 0.99]},
    cv=KFold(3),  # consecutive rows stay together, so that edges lie within a fold
)
search.fit(X, graph=graph)  # every fold gets the subgraph of its rows
print("evidence lower bound per row, on rows not trained on:")
for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
    print(f"  tau = {parameters['correlatedvae__tau']}: {score:.2f}")

# The embedding as input of a classifier that sees few labels.
rows_train, rows_test = train_test_split(np.arange(len(X)), train_size=60, stratify=label, random_state=0)
Z = search.best_estimator_.transform(X)
for name, features in (("features", X), ("embedding", Z)):
    classifier = LogisticRegression(max_iter=1000).fit(features[rows_train], label[rows_train])
    print(f"accuracy with 60 labels, {name}: {classifier.score(features[rows_test], label[rows_test]):.2f}")
