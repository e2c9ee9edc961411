"""What `CorrelatedVAE` chooses from the data where a parameter is "auto", and what it warns of after a fit.

The numbers were found on citations (3,300 rows), ratings with trust (16,000) and halves of rating lists (10,000), on
validation data; `benchmarks/defaults.py` measures them against simple methods.
"""

from collections.abc import Mapping
from math import log2
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from corrvae.data import Matrix, Table, column_moments, shape_of
from corrvae.graphs import CorrelationGraph
from corrvae.model import Posterior
from corrvae.model.families import make_family
from corrvae.nn import LIKELIHOODS, FeatureTable, Scaling, choose_likelihood
from corrvae.training import History

PAPER: Mapping[str, Any] = {
    "n_components": 100,
    "hidden": (300,),
    "tau": 0.99,
    "normalize": "none",
    "counts": "raw",
    "dropout": 0.0,
    "batch_size": 64,
    "edge_batch_size": 256,
    "learning_rate": 1e-3,
}
"""What the paper states for all its tasks; the widths of hidden layers are ours."""

# Rows from which on some are held out, and the most that are.
_ENOUGH_ROWS, _MOST_HELD_OUT = 300, 5000
# Steps over which an automatic training warms up, and steps without improvement after which it stops, at least.
_WARMUP, _FEWEST_STALE = 200, 200
# Columns for each row from which on, and share of entries other than zero up to which, the encoder needs dropout.
_MANY_COLUMNS, _SPARSE = 1.0, 0.1
# Weights between the columns and the hidden layer.
_MOST_WEIGHTS = 3_000_000
# Counts above this on average, over the entries that are not zero, are taken by their logarithm.
_LARGE_COUNT = 20.0
# Reconstruction over all other terms, mean standard deviation in every dimension, share of edges shorter than random
# pairs: beyond these a fit has gone wrong.
_DROWNED, _COLLAPSED, _NO_EFFECT = 60.0, 0.95, 0.55
_ENOUGH_EDGES, _SAMPLED_EDGES = 100, 5000


class Choice(NamedTuple):
    """A setting that was chosen from the data, and why."""

    name: str
    value: Any
    why: str


def choose(parameters: Mapping[str, Any], table: Table) -> list[Choice]:
    """Return what each parameter of the estimator that is "auto" stands for, given the data."""
    rules = {
        "likelihood": _likelihood,
        "normalize": _normalize,
        "counts": _counts,
        "n_components": _n_components,
        "hidden": _hidden,
        "dropout": _dropout,
        "tau": _tau,
        "batch_size": _batch_size,
        "edge_batch_size": lambda known, table: (4 * int(known["batch_size"]), "four for each row, as in the paper"),
        "learning_rate": lambda known, table: (3e-3, "three times the paper's, for larger batches"),
        "validation_fraction": _validation_fraction,  # these three ask whether max_epochs is "auto"
        "patience": _patience,
        "warmup_steps": _warmup_steps,
        "max_epochs": _max_epochs,
    }
    known, found = dict(parameters), []
    for name, rule in rules.items():
        if isinstance(known.get(name), str) and known[name] == "auto":
            choice = Choice(name, *rule(known, table))
            known[name] = choice.value
            found.append(choice)
    return found


def make_scaling(matrix: Matrix, likelihood: Any, counts: Literal["raw", "presence", "log"]) -> Scaling:
    """Return the units of the model: standardised columns for the Gaussian likelihood, otherwise as `counts` asks.

    Logarithms of counts are divided by their mean over the entries other than zero, so that a row weighs as much in the
    likelihood as it has such entries, and no more.
    """
    if likelihood != "gaussian" and counts == "log":
        sums = (column_moments(matrix, Scaling(units)).mean.sum() for units in ("log", "presence"))
        size = next(sums) / max(next(sums), 1e-30)
        return Scaling("log", scale=np.full(shape_of(matrix)[1], size or 1.0, np.float32))
    if likelihood != "gaussian":
        return Scaling(counts)
    mean, square, _ = column_moments(matrix)
    centred = not FeatureTable(matrix).sparse_batches
    spread = np.sqrt(np.maximum(square - np.square(mean) if centred else square, 0.0))
    spread[spread <= 1e-6 * np.maximum(np.abs(mean), 1e-30)] = 1.0
    return Scaling(location=mean if centred else None, scale=spread)


def _likelihood(known: Mapping[str, Any], table: Table) -> tuple[str, str]:
    return choose_likelihood(table.matrix, missing=known.get("missing") == "mask")


def _normalize(known: Mapping[str, Any], table: Table) -> tuple[str, str]:
    likelihood = known["likelihood"]
    kind = LIKELIHOODS[likelihood] if isinstance(likelihood, str) else likelihood
    return getattr(kind, "default_normalize", "none"), "suits the likelihood"


def _counts(known: Mapping[str, Any], table: Table) -> tuple[str, str]:
    if known["likelihood"] != "multinomial":
        return "raw", "the likelihood explains features as they are"
    filled = column_moments(table.matrix, Scaling("presence")).mean.sum()
    size = column_moments(table.matrix).mean.sum() / max(filled, 1e-30)
    if size > _LARGE_COUNT:
        return "log", f"entries other than zero are {size:,.0f} on average, and would outweigh the graph"
    return "raw", f"entries other than zero are {size:.1f} on average"


def _n_components(known: Mapping[str, Any], table: Table) -> tuple[int, str]:
    n_rows, n_columns = shape_of(table.matrix)
    wanted = 2 ** round(log2(max(4.0, n_rows) ** 0.5 / 2))
    return max(1, min(max(8, wanted), 128, n_columns)), f"half the root of {n_rows:,} rows, up to a power of two"


def _hidden(known: Mapping[str, Any], table: Table) -> tuple[tuple[int, ...], str]:
    n_columns = shape_of(table.matrix)[1]
    if 300 * n_columns <= _MOST_WEIGHTS:
        return (300,), "suits tables of up to 10,000 columns"
    return (max(32, 2 ** int(log2(_MOST_WEIGHTS / n_columns))),), f"narrow, for {n_columns:,} columns"


def _dropout(known: Mapping[str, Any], table: Table) -> tuple[float, str]:
    n_rows, n_columns = shape_of(table.matrix)
    if known["likelihood"] not in ("multinomial", "bernoulli") or n_columns < _MANY_COLUMNS * n_rows:
        return 0.0, "rows are enough for their columns"
    filled = column_moments(table.matrix, Scaling("presence")).mean.mean()
    if filled > _SPARSE:
        return 0.0, "rows are not sparse"
    return 0.25, f"{n_rows:,} sparse rows of {n_columns:,} columns are few: networks would learn them by heart"


def _tau(known: Mapping[str, Any], table: Table) -> tuple[float, str]:
    return 0.9, "embeddings, links and matches were best or nearly so on every kind of data tried, with 0.7 to 0.99"


def _batch_size(known: Mapping[str, Any], table: Table) -> tuple[int, str]:
    n_rows, n_columns = shape_of(table.matrix)
    own = make_family(known.get("family", "independent")).rows_per_step(n_rows)
    if own is not None:
        return own, "what the family draws in a step"
    doublings = max((n_rows >= 50_000) + (n_rows >= 500_000), int(n_columns >= 5_000))
    return 128 * 2**doublings, f"for {n_rows:,} rows of {n_columns:,} columns"


def _max_epochs(known: Mapping[str, Any], table: Table) -> tuple[int, str]:
    if known.get("max_steps") is not None:
        return 1, "max_steps is given"
    per_epoch = max(1, table.n_rows // int(known["batch_size"]))
    return max(1, min(max(100, -(-600 // per_epoch)), -(-6000 // per_epoch))), "600 to 6,000 steps at most"


def _validation_fraction(known: Mapping[str, Any], table: Table) -> tuple[float, str]:
    if not has_automatic_length(known):
        return 0.0, "the length of training is given"
    if table.n_rows < _ENOUGH_ROWS:
        return 0.0, f"{table.n_rows:,} rows are too few to hold some out"
    return min(0.1, _MOST_HELD_OUT / table.n_rows), "to stop when rows not trained on are explained no better"


def _patience(known: Mapping[str, Any], table: Table) -> tuple[int | None, str]:
    if known["validation_fraction"] == 0.0:
        return None, "no rows are held out"
    per_epoch = max(1, int((1 - known["validation_fraction"]) * table.n_rows) // int(known["batch_size"]))
    return max(8, -(-_FEWEST_STALE // per_epoch)), f"evaluations without improvement, one every {per_epoch:,} steps"


def _warmup_steps(known: Mapping[str, Any], table: Table) -> tuple[int, str]:
    if not has_automatic_length(known):
        return 0, "the length of training is given"
    return _WARMUP, "points must say something of their rows before the prior pulls them together"


def has_automatic_length(parameters: Mapping[str, Any]) -> bool:
    """Return whether the length of training is chosen from the data: neither epochs nor steps were given."""
    return parameters.get("max_steps") is None and "max_epochs" in parameters and parameters["max_epochs"] == "auto"


def find_problems(
    posterior: Posterior, graph: CorrelationGraph | None, history: History, stopped: str | None
) -> list[str]:
    """Return a sentence, with the cure, for each thing that is wrong with a fit of enough rows and evaluations."""
    if history.n_rows < 10 or len(posterior.mean) < _ENOUGH_ROWS:
        return []
    found = []
    last = {name: column[-1] for name, column in history.columns.items()}
    explained, latent = abs(last["reconstruction"]), abs(last["singleton"]) + abs(last.get("edge", 0.0))
    if graph is not None and explained > _DROWNED * latent:
        found.append(
            f"the features outweigh the graph: the reconstruction is {explained:,.0f} nats a row, all other terms "
            f'{latent:,.0f}. Set counts="presence" or, for large counts, counts="log"'
        )
    if posterior.stddev.mean(axis=0).min() > _COLLAPSED:  # unused dimensions beside used ones do no harm
        found.append(
            "the posterior has collapsed: its standard deviations are near 1, so embeddings say little. Set a smaller "
            "n_components, warmup_steps=500 or another likelihood"
        )
    if graph is not None and graph.n_edges >= _ENOUGH_EDGES and _graph_auc(posterior, graph) < _NO_EFFECT:
        found.append(
            "the graph has no effect: its edges are no shorter than random pairs. Check that its ids are those of the "
            "rows; train longer; or set a larger tau"
        )
    if (
        stopped == "finished"
        and "validation_reconstruction" not in history.columns
        and _rises(history.columns["total"])
    ):
        found.append(
            f"training stopped at step {last['step']:,} before the objective levelled off: raise max_steps or "
            "max_epochs, or leave both out to let validation rows decide"
        )
    return found


def _graph_auc(posterior: Posterior, graph: CorrelationGraph) -> float:
    """Return the probability that an edge is shorter than a random pair, over some thousands of them."""
    generator = np.random.default_rng(0)
    edges = graph.edges[generator.permutation(graph.n_edges)[:_SAMPLED_EDGES]]
    pairs = np.column_stack([edges[:, 0], generator.permutation(edges[:, 1])])
    lengths = [np.square(posterior.mean[ends[:, 0]] - posterior.mean[ends[:, 1]]).sum(1) for ends in (edges, pairs)]
    return float(roc_auc_score(np.repeat([0, 1], len(edges)), np.concatenate(lengths)))


def _rises(objective: list[float]) -> bool:
    """Return whether the last fifth of the evaluations gained more than a twentieth of all that was gained."""
    values = np.array(objective)
    fifth = max(2, len(values) // 5)
    gained = values[-fifth:].mean() - values[-2 * fifth : -fifth].mean()
    return bool(gained > 0.05 * (values[-fifth:].mean() - values[0]) > 0)
