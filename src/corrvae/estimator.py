"""The scikit-learn face of the library: one class that fits, embeds, scores, retrieves, generates, saves."""

import os
import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Literal, final

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from corrvae.alignment import AlignedRows, align
from corrvae.bound import evidence_bound
from corrvae.building import Architecture
from corrvae.checks import check_first_batch, check_run, check_y, mention_empty_rows, mention_ids, refuse_without_edges
from corrvae.fitting import FitData, Seeds, plan_fit, run_plan, settings_of
from corrvae.generation import PriorSample, expected_features, sample_prior, tau_of
from corrvae.graphs import CorrelationGraph, spanning_weights
from corrvae.inference import infer_posterior, recall_posterior
from corrvae.model import CorrelatedModel
from corrvae.nn.features import FeatureTable
from corrvae.nn.inputs import Normalization
from corrvae.objectives import Gamma
from corrvae.parameters import CONSTRAINTS, check_parameters
from corrvae.posterior import Posterior
from corrvae.ranks import current_ranks
from corrvae.retrieval import Retrieval
from corrvae.tables import Table, check_weights, fingerprint, own_copy, read_table, row_totals
from corrvae.training import Callback, TrainingResult
from corrvae.training.callbacks import check_callbacks
from corrvae.training.data import Redraw
from corrvae.warm_start import Past, go_on, start_anew

_NEVER_NEGATIVE = ("multinomial", "bernoulli", "poisson", "negative_binomial")


@final
class CorrelatedVAE(Retrieval, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embeddings of data points whose correlations are known as a graph.

    A variational auto-encoder whose prior correlates the latent points at the ends of an edge. The encoder reads
    features only and the graph acts through the objective, so rows never seen in training can be embedded too. Without
    a graph, `fit` trains a plain variational auto-encoder.

    Parameters
    ----------
    n_components : int
        Latent dimension.
    posterior : {"independent", "pairwise"}
        Whether the posteriors of two points are independent (CVAE_ind), or have a correlation that a pair network
        reads from the features of both (CVAE_corr; needs a graph).
    likelihood : {"gaussian", "multinomial", "bernoulli", "poisson", "negative_binomial"} or Likelihood class
        Distribution of the features given a latent point.
    tau : float or {"learned", "learned_per_dimension"}
        Correlation of the prior along an edge, strictly between -1 and 1; a learned one begins at 0.99.
    gamma : float or pair of them
        Strength of the regulariser of pairwise posteriors: of both its parts, or (singletons, pairs).
    hidden : tuple of int
        Widths of the encoder's hidden layers; the decoder has the same in reverse.
    pair_network : {"perceptron", "bilinear", "metric"} or callable
        The network that gives correlations: the paper's; one that costs hundreds of times less for each pair; one that
        reads the encoder's means and goes furthest where edges are few; or a function of the numbers of features and of
        components that makes a `corrvae.nn.PairNetwork`.
    pair_hidden : tuple of int or None
        Widths of its hidden layers; ``None``: (1000,) for the perceptron, (300,) for bilinear, () for metric.
    normalize : {"raw", "binary", "l2", "log1p"} or pair of them
        What is done to features before a network reads them: before all, or (encoder, pair network). The likelihood
        explains them as they are.
    dropout : float or pair of them
        Share of the features that are hidden from the networks at random while training: from all, or (encoder, pair
        network). Where edges are few, a pair network learns them by heart without it.
    min_stddev : float
        No standard deviation is smaller. Just above sqrt(1 - tau^2) it makes all points about equally certain.
    missing : {"error", "mask"}
        Whether NaN is refused, or stands for an entry to be left out of the likelihood.
    max_epochs, max_steps : int, int or None
        Length of training in passes over the rows, or in steps if those are given.
    vertex_batch, edge_batch, pair_batch : int, int, int or None
        Rows, edges, and for pairwise models non-edges that a step draws; ``None``: all pairs of its rows.
    edge_sampling : {"uniform", "weighted"}
        Whether edges are drawn uniformly and weighted, or in proportion to their spanning weights.
    learning_rate, warmup_steps : float, int
        Step size of Adam; steps over which all terms but the reconstruction grow to their full size.
    validation_fraction : float
        Share of rows, with the edges among them, kept for validation. If positive, the best parameters on these are
        the ones kept, by an objective whose terms have the proportions of training (see `fit`).
    patience : int or None
        Evaluations without improvement on the validation rows after which training stops; ``None``: it does not.
    evaluate_every : int or None
        Steps between evaluations, which `history_` lists; ``None``: an epoch.
    warm_start : bool
        Whether another `fit` goes on from the last one's parameters: with new draws, and the same rows held out.
    device : str
        "auto" takes CUDA, then MPS, then the CPU.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of all that is random. The same integer gives the same numbers on a CPU.

    Attributes
    ----------
    embedding_, stddev_ : ndarray of shape (n_rows, n_components)
        Means and standard deviations of the training rows' posteriors.
    ids_ : ndarray of shape (n_rows,)
        Ids of the training rows: the graph's, a data frame's index, or 0, 1, ....
    graph_ : CorrelationGraph or None
        The graph, its vertices in the order of the rows.
    weights_ : ndarray or None
        The weight that each of its edges had in training: the spanning weight, or 0 at rows held out.
    tau_ : ndarray of shape (n_components,)
        The prior's correlation in each dimension.
    model_ : corrvae.model.CorrelatedModel
        The networks.
    history_ : corrvae.training.History
        Every term at every evaluation.
    n_steps_, best_step_, stopped_ : int, int or None, str
        Steps taken; the step whose parameters were kept, with validation; and "finished", "early" or "interrupted".
    features_ : matrix or None
        A copy of the training features, which a pairwise model computes correlations from; a memory map itself.
    fingerprint_, total_ : str, float
        A code of the training features, and the median of their rows' sums.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(99)])
    >>> model = CorrelatedVAE(2, hidden=(16,), max_epochs=2, edge_batch=32, random_state=0).fit(X, graph=graph)
    >>> model.transform(X[:3]).shape
    (3, 2)
    """

    # Under metadata routing a graph reaches this estimator without being asked for.
    __metadata_request__fit: ClassVar = {"graph": True}
    __metadata_request__score: ClassVar = {"graph": True}

    _parameter_constraints: ClassVar = CONSTRAINTS

    n_features_in_: int
    feature_names_in_: np.ndarray
    _past: Past

    def __init__(
        self,
        n_components: int = 100,
        *,
        posterior: Literal["independent", "pairwise"] = "independent",
        likelihood: Any = "gaussian",
        tau: float | str = 0.99,
        gamma: Gamma | list[float] = 1.0,
        hidden: Sequence[int] = (300,),
        pair_network: Any = "perceptron",
        pair_hidden: Sequence[int] | None = None,
        normalize: Normalization | Sequence[Normalization] = "raw",
        dropout: float | Sequence[float] = 0.0,
        min_stddev: float = 1e-4,
        missing: Literal["error", "mask"] = "error",
        max_epochs: int = 40,
        max_steps: int | None = None,
        vertex_batch: int = 64,
        edge_batch: int = 256,
        pair_batch: int | None = None,
        edge_sampling: Literal["uniform", "weighted"] = "uniform",
        learning_rate: float = 1e-3,
        warmup_steps: int = 0,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        evaluate_every: int | None = None,
        warm_start: bool = False,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.posterior = posterior
        self.likelihood = likelihood
        self.tau = tau
        self.gamma = gamma
        self.hidden = hidden
        self.pair_network = pair_network
        self.pair_hidden = pair_hidden
        self.normalize = normalize
        self.dropout = dropout
        self.min_stddev = min_stddev
        self.missing = missing
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.vertex_batch = vertex_batch
        self.edge_batch = edge_batch
        self.pair_batch = pair_batch
        self.edge_sampling = edge_sampling
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.evaluate_every = evaluate_every
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        graph: Any = None,
        sample_weight: Any = None,
        redraw: Redraw | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_steps: int | None = None,
        checkpoint_minutes: float | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> "CorrelatedVAE":
        """Train on the rows of X and the graph between them. A fit that fails leaves a fitted model as it was.

        On rows held out for validation, the edge term is the mean over the edges within them, and counts as much as the
        edge term in training; if there is no such edge, the other terms alone are looked at. In a process group of
        torch all processes train one model together: each makes the same call (see `corrvae.training.train`).

        Parameters
        ----------
        X : array, memory map, SciPy sparse matrix, pandas or polars DataFrame of shape (n_rows, n_features)
            The features. Sparse ones stay sparse.
        y : ignored
            For scikit-learn.
        graph : CorrelationGraph or None
            Which rows are correlated; vertex i is row i, or the row of its id if X is a data frame with ids as index.
        sample_weight : array of shape (n_rows,) or None
            How much each row counts; the scale does not matter. Edges keep their weights.
        redraw : callable or None
            Function of row numbers and a generator that gives new features for these rows, for every batch.
        checkpoint : path or None
            A folder that the state of training is saved to, every ten minutes and at the end. If it is there already,
            because this very fit was interrupted, training goes on from it, and on a CPU ends in the same numbers as if
            it had not stopped. Needs an integer `random_state`.
        checkpoint_steps, checkpoint_minutes : int or None, float or None
            Save after so many steps or minutes instead; both may be given.
        callbacks : sequence
            Called after every step with its `corrvae.training.Progress`; `corrvae.training` has some ready made.

        Returns
        -------
        CorrelatedVAE
            Itself. After Ctrl-C too, with a warning: the step is finished and the model usable.

        Examples
        --------
        >>> CorrelatedVAE(2, max_steps=3).fit(np.eye(5), graph=CorrelationGraph([[0, 1]], 5)).n_steps_
        3
        """
        check_y(y)
        check_parameters(self)
        saving = (checkpoint, checkpoint_steps, checkpoint_minutes)
        check_run(self, *saving)
        callbacks = check_callbacks(callbacks)
        learner = copy(self)  # takes all that is learned, so that a fit that fails changes nothing
        goes_on = self.warm_start and hasattr(self, "model_")
        table = read_table(learner, X, reset=not goes_on, missing=self.missing == "mask")
        rows = align(table.n_rows, table.distinct_ids if graph is None else table.ids, graph)
        mention_ids(rows.ids)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, table)
        seeds, architecture = Seeds.of(self.random_state), Architecture.of(self, learner.n_features_in_)
        start = go_on(self.model_, self._past, architecture, seeds) if goes_on else start_anew(architecture, seeds)
        start.model.likelihood.check(table.matrix)
        if self.likelihood == "multinomial":
            mention_empty_rows(table.matrix, missing=self.missing == "mask")
        redraw = check_first_batch(redraw, start.model.likelihood)
        data = FitData(table.matrix, self.missing == "mask", rows.graph, sample_weight, redraw)
        plan = plan_fit(data, float(self.validation_fraction), start.seeds)
        if self.posterior == "pairwise" and plan.training.edges is None:
            refuse_without_edges(rows.graph)
        settings = settings_of(self, plan.training, start.seeds.training, *saving)
        result = run_plan(start.model, plan, settings, callbacks)
        learner._past = start.past_after(unfinished=checkpoint is not None and result.stopped == "interrupted")
        learner._remember_run(start.model, result)
        learner._remember_rows(table, rows, plan.weights)
        for name in vars(self).keys() - vars(learner).keys():
            delattr(self, name)
        vars(self).update(vars(learner))
        if result.stopped == "interrupted":
            warnings.warn(f"training was interrupted at step {result.n_steps}; the model can be used", stacklevel=2)
        return self

    def transform(self, X: Any) -> Any:
        """Give the means of the rows' posteriors, of shape (n_rows, n_components); new rows are welcome.

        Examples
        --------
        >>> CorrelatedVAE(2, max_steps=3).fit(np.eye(5)).transform(np.ones((1, 5))).shape
        (1, 2)
        """
        check_is_fitted(self)
        return infer_posterior(self.model_, self._table(self._read(X))).mean

    def infer_posterior(self, X: Any = None) -> Posterior:
        """Give the posterior of the rows of X, with correlations of any two of them; without X, of the training rows.

        Pairs are places, or ids that are no numbers: those of a data frame's index, or `ids_` for the training rows.

        Examples
        --------
        >>> CorrelatedVAE(2, max_steps=3).fit(np.eye(5)).infer_posterior(np.ones((1, 5)))
        Posterior(1 vertices, 2 dimensions, independent)
        """
        check_is_fitted(self)
        if X is not None:
            table = self._read(X)
            return infer_posterior(self.model_, self._table(table), table.distinct_ids)
        features = None if self.features_ is None else self._table(Table(self.features_))
        return recall_posterior(self.model_, self.embedding_, self.stddev_, features, self.ids_)

    def reconstruct(self, X: Any) -> Float[np.ndarray, "rows features"]:
        """Give the features that the model expects at the mean of each row's posterior.

        Under a multinomial likelihood these are counts that sum to what the row sums to.

        Examples
        --------
        >>> model = CorrelatedVAE(2, likelihood="multinomial", max_steps=3).fit(np.eye(5))
        >>> model.reconstruct(np.ones((1, 5))).sum().round()
        np.float32(5.0)
        """
        check_is_fitted(self)
        table = self._read(X)
        latent = infer_posterior(self.model_, self._table(table)).mean
        return expected_features(self.model_, latent, row_totals(table.matrix))

    def sample(
        self,
        n_samples: int | None = None,
        *,
        graph: CorrelationGraph | None = None,
        totals: Any = None,
        random_state: int | np.random.Generator | None = None,
    ) -> PriorSample:
        """Draw new data: latent points from the prior, then features from the likelihood.

        Parameters
        ----------
        n_samples
            Number of independent rows, 1 if it is not given. With a graph there is a row for each vertex.
        graph
            Draw along a maximal acyclic subgraph that is drawn at random from this graph, such as `graph_`.
        totals
            Under a multinomial likelihood the number of draws, for all rows or each; if it is not given, the training
            rows' median.
        random_state
            Seed or generator.

        Examples
        --------
        >>> CorrelatedVAE(2, max_steps=3).fit(np.eye(5)).sample(3, random_state=0).features.shape
        (3, 5)
        """
        check_is_fitted(self)
        totals = self.total_ if totals is None else totals
        return sample_prior(self.model_, self.tau_, n_samples, graph, totals, np.random.default_rng(random_state))

    def score(self, X: Any, y: Any = None, *, graph: Any = None, sample_weight: Any = None) -> float:
        """Give the evidence lower bound per row, in nats, without the terms that gamma adds.

        It can be compared between models that differ in gamma, tau or size; those with as many components are given the
        same latent noise, row by row: the same rows in another order score a little differently.

        Parameters
        ----------
        X
            The features.
        y : ignored
            For scikit-learn.
        graph
            The graph between these rows; its edge terms are part of the bound.
        sample_weight
            How much each row counts.

        Examples
        --------
        >>> CorrelatedVAE(2, likelihood="bernoulli", max_steps=3).fit(np.eye(5)).score(np.eye(5)) < 0
        True
        """
        check_is_fitted(self)
        check_y(y)
        table = self._read(X)
        self.model_.likelihood.check(table.matrix)
        edges, weights = None, None
        if graph is not None:
            graph = align(table.n_rows, table.ids, graph).graph
        if graph is not None and graph.n_edges:
            edges, weights = graph.edges, spanning_weights(graph, random_state=0).weights
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, table)
            sample_weight = sample_weight / sample_weight.mean()
        return evidence_bound(self.model_, self._table(table), edges, weights, sample_weights=sample_weight).total

    def save(self, path: str | os.PathLike[str], *, store_features: bool = True) -> None:
        """Write the fitted model to a folder that `corrvae.load` reads.

        Parameters
        ----------
        path
            The folder; a model in it is replaced once the new one is written whole.
        store_features
            Whether the folder of a pairwise model holds the training features, which correlations between training
            rows are computed from.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     CorrelatedVAE(2, max_steps=3).fit(np.eye(5)).save(f"{folder}/run")
        """
        from corrvae.folders import save_model

        check_is_fitted(self)
        save_model(self, path, store_features=store_features)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.input_tags.positive_only = self.likelihood in _NEVER_NEGATIVE
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def _read(self, X: Any) -> Table:
        return read_table(self, X, reset=False, missing=self.missing == "mask")

    def _table(self, table: Table) -> FeatureTable:
        return FeatureTable(table.matrix, missing=self.missing == "mask")

    def _remember_run(self, model: CorrelatedModel, result: TrainingResult) -> None:
        self.model_, self.history_ = model, result.history
        self.n_steps_, self.best_step_, self.stopped_ = result.n_steps, result.best_step, result.stopped

    def _remember_rows(self, table: Table, rows: AlignedRows, weights: np.ndarray | None) -> None:
        """Keep what the fitted model knows of its training rows."""
        self.ids_, self.graph_, self.weights_ = rows.ids, rows.graph, weights
        posterior = infer_posterior(self.model_, self._table(table), ranks=current_ranks())
        self.embedding_, self.stddev_ = (np.ascontiguousarray(part) for part in (posterior.mean, posterior.stddev))
        self.tau_ = tau_of(self.model_, int(self.n_components))
        self.total_, self.fingerprint_ = float(np.median(row_totals(table.matrix))), fingerprint(table.matrix)
        self.features_ = own_copy(table.matrix) if self.posterior == "pairwise" else None
