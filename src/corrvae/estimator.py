"""The scikit-learn face of the library: one class that fits, embeds, scores, retrieves, generates, saves."""

import logging
import os
import warnings
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, final

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from corrvae.choices import PAPER, choose, find_problems, has_automatic_length, make_scaling
from corrvae.data import (
    Matrix,
    Table,
    align,
    check_weights,
    column_moments,
    digest,
    exclusions,
    join_known,
    own_copy,
    read_table,
    row_totals,
    rows_of,
)
from corrvae.graphs import CorrelationGraph, sample_forest
from corrvae.graphs.ids import VertexIds, id_array
from corrvae.model import CorrelatedModel, Posterior, build_model
from corrvae.model.adaptive import ForestAdapter, make_forests
from corrvae.model.families import FAMILIES, Family, make_family
from corrvae.model.objectives import bound
from corrvae.model.prior import PriorSample, sample_latent
from corrvae.nn import LIKELIHOODS, NORMALIZATIONS, FeatureTable, Likelihood, Scaling
from corrvae.saving import plain, read_model, write_model
from corrvae.scoring import (
    EdgeSupport,
    LinkCalibration,
    Matches,
    Metric,
    Neighbors,
    PairRanks,
    PairScores,
    RankedFeatures,
    alike_features,
    calibrate_links,
    make_metric,
    match,
    nearest,
    parts,
    rank,
    top_features,
)
from corrvae.scoring import score as score_positions
from corrvae.training import Callback, Run, prepare_data, train
from corrvae.training.data import exhaustive
from corrvae.training.distributed import agree
from corrvae.training.loop import choose_device
from corrvae.training.validation import evaluate

_logger = logging.getLogger("corrvae")

# What parameters may be, besides their defaults: integers from a number on, numbers in a range, words.
_COUNTS = {"n_components": 1, "max_epochs": 1, "max_steps": 1, "batch_size": 1, "edge_batch_size": 1, "patience": 1}
_COUNTS |= {"average_steps": 0, "warmup_steps": 0}
_RANGES = (
    ("dropout", 0.0, 1.0),
    ("masking", 0.0, 1.0),
    ("validation_fraction", 0.0, 1.0),
    ("learning_rate", np.finfo(float).tiny, np.inf),
    ("beta", np.finfo(float).tiny, np.inf),
    ("min_stddev", np.finfo(np.float32).tiny, np.inf),
)
_WORDS = {
    "tau": ("auto", "learned", "learned_per_dimension"),
    "init": ("random", "linear"),
    "normalize": ("auto", *NORMALIZATIONS),
    "counts": ("auto", "raw", "presence", "log"),
    "missing": ("error", "mask"),
}
# Draws of the latent points that `score` averages over.
_SCORE_DRAWS = 4

MetricChoice = str | Metric | Callable[..., Any]


class _Learned:
    """Learned attributes whose types cannot be seen where they are set."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    features_: Matrix | None
    _hold_out_seed: int
    _encoded: tuple[np.ndarray, np.ndarray]
    _posterior: Posterior | None


@final
@dataclass(eq=False, repr=False)
class CorrelatedVAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, _Learned):
    """Embeddings of data points whose correlations are known as a graph.

    A variational auto-encoder whose prior correlates the latent points at the ends of an edge. The encoder reads
    features only and the graph acts through the objective, so rows not seen in training can be embedded too. Without a
    graph, `fit` trains a plain variational auto-encoder.

    Parameters
    ----------
    n_components : int or "auto"
        Latent dimension; "auto" grows with the root of the number of rows.
    family : {"independent", "pairwise", "joint"} or Family
        Posterior family: `corrvae.Independent` (CVAE_ind), `corrvae.Pairwise` with its own options (CVAE_corr; needs a
        graph), `corrvae.Joint` (conditions on the graph, and keeps vertices without features), or your own.
    likelihood : {"auto", "gaussian", "multinomial", "bernoulli", "poisson", "negative_binomial"} or Likelihood class
        Distribution of the features given a latent point; "auto" chooses from the values in X.
    tau : float or {"auto", "learned", "learned_per_dimension"}
        Correlation of the prior along an edge, strictly between -1 and 1; "auto" is 0.9, a learned one begins at 0.99.
    forests : {"uniform", "adaptive"} or corrvae.AdaptiveForests
        How the weights of edges arise: "uniform" counts every maximal acyclic subgraph alike (by its conductances, if
        there are any); "adaptive" lets edges that the posterior does not support lose their weight.
    hidden : tuple of int or "auto"
        Widths of the encoder's hidden layers; the decoder has the same in reverse. "auto": one layer of 300, narrower
        if there are more than 10,000 columns.
    init : {"random", "linear"}
        "linear" starts from the linear model in closed form, the directions in which the ends of an edge agree most:
        the encoder (which gets an affine path beside its hidden layers), its standard deviations, and tau if it is
        learned per dimension. Needs a graph.
    normalize : {"auto", "none", "binary", "l2", "log1p"}
        What is done to features before the networks read them; the likelihood explains them as they are. "auto": what
        suits the likelihood.
    counts : {"auto", "raw", "presence", "log"}
        What features that are counts become before the model sees them, networks and likelihood alike: themselves, 1,
        or log(1 + x) over its mean. "auto" takes logarithms of large counts under the multinomial likelihood, which
        would otherwise outweigh the graph. (Under the Gaussian likelihood columns are standardised.)
    dropout : float or "auto"
        Share of the features hidden from the encoder at random while training; "auto": some, where sparse rows are few
        for their columns.
    masking : float
        Teaches to complete rows, as in recommendation: some of a row's entries are hidden from the encoder, and the
        decoder explains these alone. The share hidden is drawn for each row and step, below this number.
    beta : float
        Weight in training of all terms but the reconstruction. With 1 the objective is a bound on the evidence; less
        makes posteriors narrower, as if each feature had been observed 1 / beta times.
    average_steps : int
        Steps of training over which the weights that are kept are averaged; 0: the last weights are kept.
    min_stddev : float
        Least standard deviation of a posterior. Just above sqrt(1 - tau^2) it makes all points about equally certain.
    missing : {"error", "mask"}
        Whether NaN raises an error, or stands for an entry to be left out of the likelihood.
    max_epochs, max_steps : int or "auto", int or None
        Length of training in passes over the rows, or in steps if those are given. "auto": until rows held out are
        explained no better, then some more steps on all rows.
    batch_size, edge_batch_size : int or "auto"
        Rows and edges that a step draws; "auto" depends on the numbers of rows and columns.
    learning_rate : float or "auto"
        Step size of Adam.
    warmup_steps : int or "auto"
        Steps over which all terms but the reconstruction grow to their full size; "auto": none if the length of
        training is given.
    validation_fraction : float or "auto"
        Share of rows, with the edges among them, held out for validation. If positive, the weights are kept under which
        these are reconstructed best. "auto": none if the length of training is given or there are few rows.
    patience : int, None or "auto"
        Evaluations without improvement on the validation rows after which training stops; ``None``: it does not.
    warm_start : bool
        Whether another `fit` continues from the last one's weights, with new draws and the same rows held out.
    device : str
        "auto" takes CUDA, then MPS, then the CPU.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed of all that is random. The same integer gives the same bits on a CPU.

    Attributes
    ----------
    embedding_, stddev_ : ndarray of shape (n_vertices, n_components)
        Means and standard deviations of the training rows' posteriors and, for a family that conditions on the graph,
        after them of the vertices without features.
    ids_ : ndarray of shape (n_vertices,)
        Their ids: those given, the graph's, or 0, 1, ....
    graph_ : CorrelationGraph or None
        The graph, its vertices in the same order.
    weights_ : ndarray or None
        The weight of each of its edges in training: the spanning weight, or 0 at rows held out. With adaptive forests,
        the weight that the edge ended with.
    conductances_ : ndarray or None
        With adaptive forests, the conductance that each edge ended with.
    tau_ : ndarray of shape (n_components,)
        The prior's correlation in each dimension.
    likelihood_, normalize_ : str
        What was chosen.
    choices_ : list of corrvae.choices.Choice
        Name, value and reason of every parameter that was "auto".
    model_ : corrvae.model.CorrelatedModel
        The networks.
    history_ : corrvae.training.History
        Every term at every evaluation: once an epoch, 200 times at most.
    n_steps_, best_step_, stopped_ : int, int or None, str
        Steps taken; with validation, the step that was best; and "finished", "early" or "interrupted".
    total_ : float
        Median of the training rows' sums.
    features_ : matrix or None
        The training features: a copy in float32, or the memory map itself; ``None`` if they were not saved.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    Notes
    -----
    These parameters mean the same in all methods:

    - `X`, `graph`: the points, if they are not training rows, and their links, as in `posterior`;
    - `ids`: which of them, training rows or rows of X by its ids; all without. A single id gives single rows;
    - `metric`: the score, "expected_distance", "log_odds", "mean_distance", "cosine", "inner_product", or a function of
      two blocks of points (`corrvae.scoring.Points`) that returns a matrix of scores, larger ones better. Without it
      "mean_distance" for posteriors given the graph (``family="joint"``), whose variances tell how many neighbours a
      point has, otherwise "expected_distance";
    - `progress`: whether to show a bar; ``None``: on a terminal, if it takes long;
    - `random_state`: seed or generator of what is drawn.

    Examples
    --------
    >>> X = np.random.default_rng(0).poisson(2.0, size=(100, 5))
    >>> graph = CorrelationGraph.from_edges([(i, i + 1) for i in range(99)])
    >>> model = CorrelatedVAE(2, hidden=(16,), max_epochs=2, random_state=0).fit(X, graph=graph)
    >>> model.transform(X[:3]).shape
    (3, 2)
    >>> scores, ids = model.kneighbors(ids=[7], n_neighbors=3)
    >>> ids.shape
    (1, 3)
    >>> model.score_pairs([(0, 1), (0, 2)], metric="cosine")
    PairScores(2 pairs, cosine)
    >>> model.match([0, 1], [2, 3, 4])
    Matches(2 pairs, expected_distance, one to one)
    >>> model.recommend(ids=[7, 8], k=4, exclude_seen=False)
    RankedFeatures(2 queries, 4 each)
    >>> model.edge_support_, model.propagate().posterior()
    (EdgeSupport(99 edges), Posterior(100 vertices, 2 dimensions, correlated))
    """

    # Under metadata routing a graph reaches this estimator without being requested.
    __metadata_request__fit: ClassVar = {"graph": True}
    __metadata_request__score: ClassVar = {"graph": True}

    n_components: int | str = "auto"
    _: KW_ONLY
    family: Any = "independent"
    likelihood: Any = "auto"
    tau: float | str = "auto"
    forests: Any = "uniform"
    hidden: Sequence[int] | Literal["auto"] = "auto"
    init: Literal["random", "linear"] = "random"
    normalize: str = "auto"
    counts: str = "auto"
    dropout: float | Literal["auto"] = "auto"
    masking: float = 0.0
    beta: float = 1.0
    average_steps: int = 0
    min_stddev: float = 1e-4
    missing: Literal["error", "mask"] = "error"
    max_epochs: int | str = "auto"
    max_steps: int | None = None
    batch_size: int | str = "auto"
    edge_batch_size: int | str = "auto"
    learning_rate: float | str = "auto"
    warmup_steps: int | str = "auto"
    validation_fraction: float | str = "auto"
    patience: int | str | None = "auto"
    warm_start: bool = False
    device: str = "auto"
    random_state: Any = None

    @classmethod
    def paper(cls, task: Literal["clustering", "links", "matching"], **changes: Any) -> "CorrelatedVAE":
        """Return an estimator with the paper's settings for one of its tasks: CVAE_corr, or another `family`.

        The paper states neither the widths of hidden layers nor the length of training; set `max_steps`.
        """
        gamma = {"clustering": 0.1, "links": 1000.0, "matching": 1.0}[task]
        settings = {
            "family": make_family("pairwise").set_params(gamma_kl=gamma, gamma_mi=gamma, pair_batch=256),
            "likelihood": "bernoulli" if task == "clustering" else "multinomial",
        }
        return cls(**{**PAPER, **settings, **changes})

    # ---- training

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        graph: Any = None,
        ids: Any = None,
        sample_weight: Any = None,
        augment: Callable[..., Any] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> "CorrelatedVAE":
        """Train on the rows of X and the graph between them. A fit that fails leaves a fitted model as it was.

        Parameters
        ----------
        X : array, memory map, SciPy sparse matrix, DataFrame, AnnData, PyG Data, path, or corrvae.io.Features
            The features, a row for each point, or a long DataFrame (id, item, perhaps value). Sparse ones stay sparse,
            mapped ones on the disk.
        y : ignored
            For scikit-learn.
        graph : CorrelationGraph, networkx graph, SciPy adjacency, edge_index, DataFrame, pairs, path, or None
            Which rows are correlated, as `corrvae.data.align` reads it; vertex i is row i, or the row of its id if the
            rows have ids. A name is that of an ``obsp`` of AnnData.
        ids : array of shape (n_rows,) or None
            Ids of the rows; ``None``: the index of a pandas frame, or the graph's.
        sample_weight : array of shape (n_rows,) or None
            How much each row counts; the scale does not matter. Edges keep their weights.
        augment : callable or None
            Function of row numbers and a generator that returns new features for these rows, for every batch.
        callbacks : sequence
            Called after every step with its `corrvae.training.Progress`. `corrvae.training` has some ready made, among
            them `Checkpoint`, which saves the state of training and resumes from it.

        Returns
        -------
        CorrelatedVAE
            Itself. After Ctrl-C too, with a warning: the step is finished and the model usable.
        """
        if isinstance(y, CorrelationGraph):
            raise TypeError("y, the second argument, is ignored; pass the graph by name: fit(X, graph=graph)")
        self._check_parameters()
        choose_device(self.device)  # raises before anything is read
        resumable = any(hasattr(callback, "save") for callback in callbacks)
        if resumable and not isinstance(self.random_state, Integral):
            raise ValueError("a fit with a Checkpoint needs an integer random_state; otherwise it could not be resumed")
        learner = copy(self)  # receives all that is learned, so that a fit that fails changes nothing
        warm = self.warm_start and hasattr(self, "model_")
        masked = self.missing == "mask"
        table = read_table(learner, X, ids=ids, reset=not warm, missing=masked)
        table = align(table, graph, keep_bare=make_family(self.family).conditions_on_graph)
        weights = check_weights(sample_weight, table.n_rows)
        seeds = np.random.SeedSequence(agree(_seed(self.random_state))).generate_state(3)
        learner._choose(table, warm=warm)
        chosen = learner._chosen
        model = learner._start(table, int(seeds[0]), warm=warm)
        model.likelihood.check(table.matrix)
        if learner.likelihood_ == "multinomial":
            _warn_empty_rows(table.matrix)
        prepared = prepare_data(
            table.matrix,
            table.graph,
            missing=masked,
            sample_weight=weights,
            augment=augment,
            scaling=learner._scaling,
            validation_fraction=float(chosen["validation_fraction"]),
            finish_on_everything=has_automatic_length(self.get_params(deep=False))
            and self.validation_fraction == "auto"
            and table.n_rows * chosen["validation_fraction"] > 0,
            batch_size=int(chosen["batch_size"]),
            edge_batch_size=int(chosen["edge_batch_size"]),
            seed=int(np.random.SeedSequence((int(seeds[1]), learner.n_fits_)).generate_state(1)[0]),
            hold_out_seed=learner._hold_out_seed if warm else int(seeds[2]),
        )
        learner._hold_out_seed = learner._hold_out_seed if warm else int(seeds[2])
        if model.family.needs_graph and prepared.training.edges is None:
            raise ValueError(
                f"family={self.family!r} learns from edges, and there are none between rows that are trained on: pass "
                'fit(X, graph=...), lower validation_fraction, or use family="independent"'
            )
        if self.init == "linear" and not warm:
            model.start_linear(prepared.training, seed=int(seeds[0]) % 2**32)
        per_epoch = model.family.steps_per_epoch(prepared.training)
        run = train(
            model,
            prepared.training,
            max_steps=int(chosen["max_epochs"]) * per_epoch if self.max_steps is None else int(self.max_steps),
            learning_rate=float(chosen["learning_rate"]),
            warmup_steps=int(chosen["warmup_steps"]),
            beta=float(self.beta),
            average_steps=int(self.average_steps),
            validation=prepared.validation,
            everything=prepared.everything,
            patience=None if chosen["patience"] is None else int(chosen["patience"]),
            forests=make_forests(self.forests),
            device=self.device,
            callbacks=callbacks,
            identity=learner._identity(table, weights) if resumable else "",
        )
        learner._remember(run, table, prepared.weights)
        for name in vars(self).keys() - vars(learner).keys():
            delattr(self, name)
        vars(self).update(vars(learner))
        if run.stopped == "interrupted":
            warnings.warn(f"training was interrupted at step {run.step}; the model is usable", stacklevel=2)
        else:
            for sentence in find_problems(self.posterior(), self.graph_, self.history_, self.stopped_):
                warnings.warn(sentence, stacklevel=2)
        return self

    def _check_parameters(self) -> None:
        """Raise a `ValueError` or `TypeError` for a parameter that cannot be."""
        defaults = CorrelatedVAE().get_params(deep=False)
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value != defaults[name] and not (value is None and name == "patience"):
                _check_count(name, value, least)
        widths = () if isinstance(self.hidden, str) and self.hidden == "auto" else self.hidden
        if not isinstance(widths, (tuple, list)) or not all(_is_count(width, 1) for width in widths):
            raise ValueError(f'hidden must be "auto" or a tuple of positive integers, got {self.hidden!r}')
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if value != defaults[name] and not (isinstance(value, Real) and least <= float(value) < most):
                bounds = "positive and finite" if most == np.inf else f"in [{least:g}, {most:g})"
                raise ValueError(f"{name} must be {bounds}, got {value!r}")
        for name, words in {"likelihood": ("auto", *LIKELIHOODS), **_WORDS}.items():  # likelihoods may be added
            value = getattr(self, name)
            if value not in words and (isinstance(value, str) or name not in ("likelihood", "tau")):
                raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}; got {value!r}")
        if not isinstance(self.tau, str) and not (isinstance(self.tau, Real) and -1 < self.tau < 1):
            raise ValueError(f"tau must lie strictly between -1 and 1, or be one of {_WORDS['tau']}; got {self.tau!r}")
        make_family(self.family)
        make_forests(self.forests)
        given = self.validation_fraction != "auto" or not has_automatic_length(self.get_params(deep=False))
        if self.patience not in (None, "auto") and given and self.validation_fraction in (0, "auto"):
            raise ValueError(f"patience={self.patience} needs validation rows: set validation_fraction=0.1")

    def _choose(self, table: Table, *, warm: bool) -> None:
        """Choose what is to be chosen from the data; a fit that continues keeps the architecture it has."""
        parameters = self.get_params(deep=False)
        if warm:
            kept = {name: value for name, value in self._chosen.items() if name in (*self._architecture, "counts")}
            parameters |= {name: value for name, value in kept.items() if parameters[name] == "auto"}
        choices = choose(parameters, table)
        if not warm:
            self.choices_ = choices
            for name, value, why in choices:
                _logger.info("%s = %s: %s", name, value, why)
        self._chosen = parameters | {choice.name: choice.value for choice in choices}
        self.likelihood_, self.normalize_ = self._chosen["likelihood"], self._chosen["normalize"]
        if not warm:
            self._scaling = make_scaling(table.matrix, self.likelihood_, self._chosen["counts"])

    def _start(self, table: Table, seed: int, *, warm: bool) -> CorrelatedModel:
        """Return new networks, or a copy of the last fit's."""
        chosen = self._chosen
        architecture = {
            "n_components": int(chosen["n_components"]),
            "likelihood": self.likelihood_,
            "tau": chosen["tau"] if isinstance(chosen["tau"], str) else float(chosen["tau"]),
            "hidden": tuple(int(width) for width in chosen["hidden"]),
            "init": self.init,
            "normalize": self.normalize_,
            "dropout": float(chosen["dropout"]),
            "masking": float(self.masking),
            "min_stddev": float(self.min_stddev),
        }
        model = build_model(self.n_features_in_, family=make_family(self.family), seed=seed, **architecture)
        if not warm:
            model.start_at(column_moments(table.matrix, self._scaling).mean)
        else:
            changed = [name for name, value in architecture.items() if self._architecture.get(name) != value]
            try:
                model.load_state_dict(self.model_.state_dict())
            except RuntimeError:  # the family has other networks
                changed.append("family")
            if changed:
                raise ValueError(
                    f"warm_start cannot continue with another {changed[0]}; set it back, or fit with warm_start=False"
                )
        # A fit that was interrupted is repeated with the same draws, so that it may be resumed.
        self.n_fits_ = self.n_fits_ + (self.stopped_ != "interrupted") if warm else 0
        self._architecture = architecture
        return model

    def _identity(self, table: Table, weights: np.ndarray | None) -> str:
        """Return what identifies this fit: parameters but for its length, data, graph and weights."""
        left_out = ("max_steps", "max_epochs", "patience", "device", "warm_start")
        parameters = {name: plain(value) for name, value in self.get_params().items() if name not in left_out}
        code = blake2b(repr((sorted(parameters.items()), self.n_fits_, digest(table.matrix))).encode(), digest_size=16)
        of_graph = () if table.graph is None else (table.graph.edges, table.graph.conductances)
        for number, part in enumerate((weights, *of_graph)):
            if part is not None:
                code.update(bytes([number]) + np.ascontiguousarray(part).tobytes())
        return code.hexdigest()

    def _remember(self, run: Run, table: Table, weights: np.ndarray | None) -> None:
        """Keep what the fitted model knows of its training and its rows."""
        self.model_, self.history_ = run.model, run.history
        self.n_steps_, self.best_step_, self.stopped_ = run.step, run.best_step, run.stopped
        self.ids_, self.graph_, self.weights_ = table.vertex_ids, table.graph, weights
        self._encoded = run.model.encode(self._table(table))
        self.features_ = own_copy(table.matrix)
        self.conductances_ = None
        options = make_forests(self.forests)
        if options is not None and table.graph is not None and table.graph.n_edges:
            maximal = run.model.family.draws_forests(run.data)
            found = ForestAdapter(table.graph, options, maximal=maximal).adapt(self._edge_terms(table.graph))
            self.weights_, self.conductances_ = found.weights, found.conductances
            if weights is not None:
                self.weights_ = np.where(weights > 0, found.weights, 0.0)  # rows held out have taught nothing
        self._posterior = self._condition()
        self.embedding_, self.stddev_, self.tau_ = self._posterior.mean, self._posterior.stddev, self._posterior.tau
        self.total_ = float(np.median(row_totals(table.matrix, self._scaling)))

    def _own_table(self) -> FeatureTable | None:
        return None if self.features_ is None else self._table(Table(self.features_))

    def _edge_terms(self, graph: CorrelationGraph) -> Float[np.ndarray, " edges"]:
        return self.model_.edge_terms(self._encoded, self._own_table(), graph)

    def _condition(self) -> Posterior:
        """Return the posterior of the training vertices, from their encodings."""
        graph = self._weighted_graph
        return self.model_.family.posterior(self.model_, *self._encoded, self._own_table(), self.ids_, graph)

    @property
    def _weighted_graph(self) -> CorrelationGraph | None:
        """The training graph, with the conductances that adaptive forests ended with."""
        if self.graph_ is None or self.conductances_ is None:
            return self.graph_
        return self.graph_.with_conductances(self.conductances_)

    @property
    def edge_support_(self) -> EdgeSupport:
        """What the data say of every edge of the training graph, least supported first: weight, conductance and T."""
        check_is_fitted(self)
        if self.graph_ is None or self.weights_ is None:
            raise ValueError("the model was trained without a graph")
        given = self.graph_.conductances if self.conductances_ is None else self.conductances_
        given = np.ones(self.graph_.n_edges) if given is None else given
        terms = self._edge_terms(self.graph_)
        order = np.argsort(-terms, kind="stable")
        id_pairs = self.ids_[self.graph_.edges[order]]
        return EdgeSupport(id_pairs, self.weights_[order], given[order], terms[order])

    # ---- inference

    def propagate(self, n_forests: int = 20) -> "CorrelatedVAE":
        """Return this model with joint posteriors, averaged over some forests: those of ``family="joint"``.

        Training is that of CVAE_ind in both, so nothing is trained again.
        """
        check_is_fitted(self)
        if not self.model_.family.can_propagate:
            raise ValueError(f'only a model with family="independent" can be propagated, not {self.family!r}')
        joint, other = FAMILIES["joint"]().set_params(n_forests=n_forests), copy(self)
        built: Any = make_family(joint)
        width, dropout = self.embedding_.shape[1], self._architecture["dropout"]
        built.build(self.n_features_in_, width, normalize=self.normalize_, dropout=dropout)
        built.weigh_evidence(0 if self.graph_ is None else self.graph_.n_edges)
        other.family, other.model_ = joint, deepcopy(self.model_)
        other.model_.family = built.eval()
        other._posterior = other._condition()
        other.embedding_, other.stddev_ = other._posterior.mean, other._posterior.stddev
        return other

    def transform(self, X: Any, graph: Any = None) -> Any:
        """Return the means of the rows' posteriors, of shape (n_rows, n_components). Rows may be new.

        Without a graph, rows are embedded by their features alone, training rows too; these have their embeddings given
        the training graph in `embedding_`.
        """
        check_is_fitted(self)
        table = self._read(X)
        return self._points(table, graph).mean[: table.n_rows]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the embeddings of the training rows, given the graph if the family conditions on it."""
        self.fit(X, y, **fit_params)
        return self.embedding_[: len(self._encoded[0])]

    def posterior(self, X: Any = None, graph: Any = None) -> Posterior:
        """Return the posterior of the rows of X, with correlations of any two of them; without X, of the training rows.

        Parameters
        ----------
        X : matrix of features or None
            The rows.
        graph : any form of graph, or None
            For a family that conditions on the graph (``family="joint"``): links of these points. Rows with ids may be
            linked to each other, to training vertices, and to ids without features; all are added to the training
            graph, and points without features follow the rows in the result. A row whose id is a training row's takes
            its place. Rows without ids are points by themselves, and the graph is between them alone.

        Examples
        --------
        >>> model = CorrelatedVAE(2, family="joint", max_steps=3).fit(np.eye(3), graph=[(0, 1), (1, 2)])
        >>> model.posterior(graph=[(2, 3)]).ids.tolist()
        [0, 1, 2, 3]
        """
        check_is_fitted(self)
        return self._points(None if X is None else self._read(X), graph)

    def _points(self, table: Table | None, graph: Any, *, everyone: bool = False) -> Posterior:
        """Return the posterior of the rows of a table, or of `everyone` that their graph joins them with."""
        family = self.model_.family
        if graph is None:
            if table is None:
                if self._posterior is None:
                    self._posterior = self._condition()
                return self._posterior
            return family.infer(self.model_, self._table(table), None, table.row_ids)
        if not family.conditions_on_graph:
            raise ValueError(
                f"with family={self.family!r} posteriors depend on features alone, so a graph changes nothing; leave "
                'it out, or fit with family="joint"'
            )
        if table is not None and table.ids is None:
            table = align(table, graph, keep_bare=True)
            return family.infer(self.model_, self._table(table), table.graph, table.vertex_ids)
        joined = join_known(table, graph, self._weighted_graph, self.ids_, len(self._encoded[0]))
        encoded = [part[joined.known_rows] for part in self._encoded]
        if table is not None:
            new = self.model_.encode(self._table(table))
            encoded = [np.concatenate(parts) for parts in zip(new, encoded, strict=True)]
        points = family.posterior(self.model_, *encoded, None, joined.graph.ids, joined.graph)
        return points if everyone or table is None else points.take(joined.asked)

    def reconstruct(self, X: Any = None, *, ids: Any = None, graph: Any = None) -> Float[np.ndarray, "rows features"]:
        """Return the features that the model expects at the mean of each point's posterior.

        Under a multinomial likelihood these are counts that sum to what the row sums to, and to the training rows'
        median for a point without features.
        """
        check_is_fitted(self)
        table = None if X is None else self._read(X)
        points = self._points(table, graph)
        matrix = self.features_ if table is None else table.matrix
        totals = np.full(len(points), self.total_)
        if matrix is not None:
            known = row_totals(matrix, self._scaling)
            totals[: len(known)] = known
        chosen = np.arange(len(points)) if ids is None else points.positions(ids)
        features = self.model_.decode(points.mean[chosen], totals[chosen], self.model_.likelihood.mean)
        return self._scaling.invert(features)

    def sample(
        self,
        n_samples: int | None = None,
        *,
        graph: CorrelationGraph | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> PriorSample:
        """Draw new data: latent points from the prior, then features from the likelihood.

        Under a multinomial likelihood a row sums to the training rows' median.

        Parameters
        ----------
        n_samples : int or None
            Number of independent rows, 1 by default. With a graph there is a row for each vertex.
        graph : CorrelationGraph or None
            Draw along a maximal acyclic subgraph that is drawn at random from this graph, such as `graph_`.
        """
        check_is_fitted(self)
        generator = np.random.default_rng(random_state)
        if graph is not None and not isinstance(graph, CorrelationGraph):
            raise TypeError(f"graph must be a corrvae.CorrelationGraph, got {type(graph).__name__}")
        if graph is not None and n_samples not in (None, graph.n_vertices):
            raise ValueError(f"a sample along a graph has a row for each of its {graph.n_vertices} vertices")
        if n_samples is not None:
            _check_count("n_samples", n_samples)
        n_rows = n_samples or (1 if graph is None else graph.n_vertices)
        forest = np.empty((0, 2), np.int64) if graph is None else graph.edges[sample_forest(graph, generator)]
        latent = sample_latent(self.tau_, int(n_rows), forest, generator)
        totals, draw = np.full(int(n_rows), self.total_), self.model_.likelihood.sample
        features = self.model_.decode(latent, totals, lambda outputs, given: draw(outputs, generator, given))
        return PriorSample(self._scaling.invert(features), latent)

    def score(self, X: Any, y: Any = None, *, graph: Any = None, sample_weight: Any = None) -> float:
        """Return the evidence lower bound per row, in nats, without the terms that gamma adds.

        It can be compared between models that differ in gamma, tau or size, but not in `masking`: it is then that of
        hidden entries alone. The edge terms of a graph between these rows are part of the bound; `sample_weight` is as
        in `fit`, and `y` is ignored.
        """
        check_is_fitted(self)
        if isinstance(y, CorrelationGraph):
            raise TypeError("y, the second argument, is ignored; pass the graph by name: score(X, graph=graph)")
        table = align(self._read(X), graph, keep_bare=self.model_.family.conditions_on_graph)
        self.model_.likelihood.check(table.matrix)
        weights = check_weights(sample_weight, table.n_rows)
        masked = self.missing == "mask"
        prepared = prepare_data(table.matrix, table.graph, missing=masked, scaling=self._scaling, sample_weight=weights)
        data, options = exhaustive(prepared.training, as_inferred=True), make_forests(self.forests)
        if options is not None and data.edges is not None:
            adapter = ForestAdapter(data.graph, options, maximal=self.model_.family.draws_forests(data))
            encoded = self.model_.encode(data.table)
            data = data.adapt(adapter.adapt(self.model_.edge_terms(encoded, data.table, data.graph)))
        found = float(np.mean([bound(evaluate(self.model_, data, seed=seed)) for seed in range(_SCORE_DRAWS)]))
        if self._scaling.scale is None:
            return found
        # the density in the user's units: the bound is of standardised columns
        return found - float(column_moments(table.matrix).known @ np.log(self._scaling.scale))

    def _read(self, X: Any) -> Table:
        return read_table(self, X, reset=False, missing=self.missing == "mask")

    def _table(self, table: Table) -> FeatureTable:
        return FeatureTable(table.matrix, missing=self.missing == "mask", scaling=self._scaling)

    # ---- retrieval

    def kneighbors(
        self,
        X: Any = None,
        *,
        graph: Any = None,
        ids: Any = None,
        n_neighbors: int = 10,
        metric: MetricChoice | None = None,
        candidates: Any = None,
        exclude: Any = None,
        progress: bool | None = None,
    ) -> Neighbors:
        """Find the exact nearest neighbours of points among the training rows, best first whatever the metric.

        Parameters
        ----------
        n_neighbors : int
            How many candidates to return for each query.
        candidates : array of ids, or None
            Training points to search among; ``None``: all but groups.
        exclude : "self", CorrelationGraph or None
            What queries leave out: themselves, or themselves and their neighbours in a graph, such as `graph_`. By
            default training rows leave out themselves.

        Returns
        -------
        Neighbors
            With `scores`, `ids` and `parts`; ``scores, ids = model.kneighbors(...)`` works too.
        """
        check_is_fitted(self)
        _check_count("n_neighbors", n_neighbors)
        training = self.posterior()
        score = make_metric(training.usual_metric if metric is None else metric)
        if candidates is None:
            among = self._without_groups(training)
        else:
            among = training.take(training.distinct_positions(candidates, "candidates"))
        if not len(among):
            raise ValueError("there are no candidates")
        queries = training if X is None and graph is None else self.posterior(X, graph)
        single = _is_single(ids)
        if ids is not None:
            queries = queries.take(queries.positions([ids] if single else ids))
        elif queries is training and candidates is None:
            queries = among  # the same points: each pair is evaluated once
        exclude = "self" if exclude is None and X is None else exclude
        found, scores = nearest(
            queries,
            among,
            score,
            min(int(n_neighbors), len(among)),
            exclude=exclusions(queries.ids, among.ids, exclude),
            progress=progress,
        )
        result = Neighbors.of(queries, among, score, found, scores)
        return result.first() if single else result

    def _without_groups(self, points: Posterior) -> Posterior:
        if self.graph_ is None or not self.graph_.has_groups:
            return points
        return points.take(np.flatnonzero(~self.graph_.is_group))

    def recommend(
        self,
        X: Any = None,
        *,
        graph: Any = None,
        ids: Any = None,
        k: int = 10,
        exclude_seen: bool = True,
        items: Any = None,
        n_samples: int = 16,
        random_state: int | np.random.Generator | None = 0,
    ) -> RankedFeatures:
        """Find the features that points most probably have: of users and items, what to recommend to whom.

        The score is the expectation of the likelihood's mean under the posterior, E_q[E[x | z]]: under a multinomial or
        Bernoulli likelihood a probability. It is averaged over draws with the same noise for every point.

        Parameters
        ----------
        k : int
            How many features for each point.
        exclude_seen : bool
            Whether to leave out the features that a row has (entries that are neither 0 nor missing).
        items : array of names, or None
            Features to choose among, by name, or by number if they have no names; ``None``: all.
        n_samples : int
            Draws from each posterior, an even number; 0 decodes its mean.

        Returns
        -------
        RankedFeatures
            With `ids` and `scores`; ``ids, scores = model.recommend(...)`` works too.
        """
        check_is_fitted(self)
        _check_count("k", k)
        among = None if items is None else self._feature_positions(items)
        table = None if X is None else self._read(X)
        points, matrix = self._points(table, graph), self.features_ if table is None else table.matrix
        if exclude_seen and matrix is None:
            raise ValueError(
                "what training rows have is not known, because their features were not saved with the model "
                "(store_features=False); pass exclude_seen=False, or the features: recommend(X)"
            )
        single = _is_single(ids)
        rows = np.arange(len(points)) if ids is None else points.positions([ids] if single else ids)
        points = points.take(rows)
        found, scores = top_features(
            self.model_,
            points,
            int(k),
            seen=(lambda block: rows_of(matrix, rows[block])) if exclude_seen else None,  # pyright: ignore
            among=among,
            scaling=self._scaling,
            n_samples=n_samples,
            random_state=random_state,
        )
        result = RankedFeatures.of(points.ids, self.feature_names_, found, scores)
        return result.first() if single else result

    def similar_features(
        self, features: Any = None, *, k: int = 10, random_state: int | np.random.Generator | None = 0
    ) -> RankedFeatures:
        """Find the `k` features most like others: those whose decoder outputs correlate most over the latent space.

        `features` are names, or numbers if they have no names; ``None``: all. A single one gives single rows. Outputs
        are correlated over one draw from each training row's posterior.
        """
        check_is_fitted(self)
        _check_count("k", k)
        single = _is_single(features)
        names = self.feature_names_
        places = np.arange(len(names))
        if features is not None:
            places = self._feature_positions([features] if single else features)
        found, scores = alike_features(self.model_, self.posterior(), places, int(k), random_state=random_state)
        result = RankedFeatures.of(names[places], names, found, scores)
        return result.first() if single else result

    @property
    def feature_names_(self) -> np.ndarray:
        """Names of the features, or their numbers if they have none."""
        return np.asarray(getattr(self, "feature_names_in_", np.arange(self.n_features_in_)))

    def _feature_positions(self, features: Any) -> Int[np.ndarray, " features"]:
        """Return the columns of features; an unknown one raises a `ValueError` that names it."""
        names = VertexIds.from_vertices(self.feature_names_)
        wanted = id_array(features, "features")
        places = names.find(wanted)
        if (places < 0).any():
            odd, first = wanted[places < 0][:1].tolist()[0], names.values[:1].tolist()[0]
            raise ValueError(f"feature {odd!r} is not among the {len(names):,} that the model knows, such as {first!r}")
        return places

    def score_pairs(
        self,
        pairs: Any,
        X: Any = None,
        *,
        graph: Any = None,
        metric: MetricChoice | None = None,
        probability: LinkCalibration | None = None,
    ) -> PairScores:
        """Score given pairs of points.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2)
            Pairs of ids. With a graph, they may join rows of X with training rows.
        probability : LinkCalibration or None
            From `calibrate_links`, to return the probability of a link too.
        """
        check_is_fitted(self)
        points = self._points(None if X is None else self._read(X), graph, everyone=True)
        score = make_metric(points.usual_metric if metric is None else metric)
        if probability is not None and probability.metric != score.name:
            raise ValueError(f"the calibration is of {probability.metric}, but the metric is {score.name}")
        placed = points.pair_positions(pairs)
        scores = score_positions(points, points, score, placed)
        probabilities = None if probability is None else probability(scores)
        return PairScores(**_of_pairs(points, score, placed, scores), probabilities=probabilities)

    def rank_pairs(
        self,
        pairs: Any,
        X: Any = None,
        *,
        metric: MetricChoice | None = None,
        exclude: Any = None,
        progress: bool | None = None,
    ) -> PairRanks:
        """Rank each target among all points but its query: 1 plus the number of others with a score as good.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2)
            Ids of queries and their targets.
        exclude : CorrelationGraph or None
            A graph leaves a query's neighbours out too; the target itself always takes part.
        """
        points = self.posterior(X)
        score = make_metric(points.usual_metric if metric is None else metric)
        points = self._without_groups(points) if X is None else points
        placed = points.pair_positions(pairs)
        left_out = exclusions(points.ids, points.ids, "self" if exclude is None else exclude)
        ranks, scores = rank(points, points, score, placed, exclude=left_out, progress=progress)
        return PairRanks(**_of_pairs(points, score, placed, scores), ranks=ranks)

    def match(
        self,
        left: Any,
        right: Any,
        X: Any = None,
        *,
        caliper: float | str | None = None,
        ratio: int = 1,
        replace: bool = False,
        exact_on: Any = None,
        metric: MetricChoice | None = None,
        n_candidates: int | None = None,
        progress: bool | None = None,
    ) -> Matches:
        """Pair the points of two sides; in studies of causes the treated (left) with controls (right).

        By default no point is in two pairs, there are as many pairs as possible, and the sum of scores is the best.

        Parameters
        ----------
        left, right : arrays of ids
            The two sides, without a common point.
        caliper : float, str or None
            The worst score that a pair may have, in the units of the metric. "0.5sd": the score of a point with
            itself, moved by half a standard deviation of the embedding in every dimension. Points without a partner are
            in `Matches.unmatched`.
        ratio : int
            Right points for each left one, at most. All left points get a first one before any gets a second.
        replace : bool
            Whether a right point may be in several pairs: each left point then gets its nearest ones.
        exact_on : data frame, series, mapping, array or None
            Values that partners must have in common, by id (index of a frame, keys of a mapping), or an array with a
            row for each training row or row of X.
        n_candidates : int or None
            Allow only so many nearest candidates of each point; ``None``: all, up to four million pairs, otherwise 50.
            `Matches.exact` is whether the matching is certainly the best of all. With `replace` it always is.
        """
        points = self.posterior(X)
        return match(
            points,
            left,
            right,
            points.usual_metric if metric is None else metric,
            caliper=caliper,
            ratio=ratio,
            replace=replace,
            exact_on=exact_on,
            n_candidates=n_candidates,
            progress=progress,
        )

    def calibrate_links(
        self,
        links: Any,
        X: Any = None,
        *,
        metric: MetricChoice = "log_odds",
        prior: float | None = None,
        n_unlinked: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> LinkCalibration:
        """Learn the probability of a link given a score, from links that training has not seen.

        Parameters
        ----------
        links : array of shape (n_links, 2)
            Held-out links, as pairs of ids; an edge of the training graph raises an error.
        prior : float or None
            The share of linked pairs among those that will be scored; ``None``: that among all pairs of training rows,
            by the training graph and these links.
        n_unlinked : int or None
            Random pairs without a link to compare with; ``None``: ten for each link, and at least 1000.
        """
        points = self.posterior(X)
        edges = self.graph_.edges if X is None and self.graph_ is not None else None
        if prior is None and edges is None:
            raise ValueError("pass prior, the share of linked pairs: there is no training graph to compute it from")
        return calibrate_links(
            points,
            points.pair_positions(links),
            metric,
            edges=np.empty((0, 2), np.int64) if edges is None else edges,
            prior=prior,
            n_unlinked=n_unlinked,
            random_state=random_state,
        )

    # ---- saving

    def save(self, path: str | os.PathLike[str], *, store_features: bool = True) -> None:
        """Write the fitted model to a folder that `corrvae.load` reads.

        Parameters
        ----------
        path
            The folder; a model in it is replaced once the new one is written whole.
        store_features
            Whether the training features go along. Without them the loaded model cannot compute correlations between
            training rows from their features, nor what these rows have already.
        """
        check_is_fitted(self)
        write_model(self, path, store_features=store_features)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mask"
        likelihood = LIKELIHOODS.get(self.likelihood) if isinstance(self.likelihood, str) else self.likelihood
        tags.input_tags.positive_only = bool(getattr(likelihood, "non_negative", False))
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]


def load(
    path: str | os.PathLike[str],
    *,
    likelihood: Callable[[int], Likelihood] | None = None,
    family: Family | None = None,
) -> CorrelatedVAE:
    """Read a fitted model from the folder that `CorrelatedVAE.save` wrote. No code in the folder is run.

    Parameters
    ----------
    path
        The folder.
    likelihood, family
        What the model was made with, if that was your own: code is never read from a folder. A family of corrvae with
        your own pair network counts as your own.

    Raises
    ------
    FolderError
        With the path and what is wrong, if the folder is missing, damaged, foreign, or of another version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> model = CorrelatedVAE(2, max_steps=3).fit(np.eye(5))
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/run")
    ...     again = load(f"{folder}/run")
    >>> np.array_equal(again.transform(np.eye(5)), model.transform(np.eye(5)))
    True
    """
    return read_model(path, CorrelatedVAE, {"likelihood": likelihood, "family": family})


def _of_pairs(points: Posterior, metric: Metric, placed: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
    """Return what results for pairs of points have in common."""
    found = parts(points, points, metric, placed, scores)
    names = {"metric": metric.name, "larger_is_better": metric.larger_is_better}
    return {"id_pairs": points.ids[placed], "scores": scores, "parts": found, **names}


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if random_state is not None and (not isinstance(random_state, Integral) or random_state < 0):
        raise ValueError(f"random_state must be a non-negative integer, a generator or None, got {random_state!r}")
    return int(np.random.SeedSequence().generate_state(1)[0]) if random_state is None else int(random_state)


def _is_single(ids: Any) -> bool:
    return isinstance(ids, str) or (ids is not None and np.ndim(ids) == 0)


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _check_count(name: str, value: Any, least: int = 1) -> None:
    if not _is_count(value, least):
        kind = "a positive integer" if least else "an integer, 0 or more"
        raise ValueError(f"{name} must be {kind}, got {value!r}")


def _warn_empty_rows(matrix: Any) -> None:
    empty = np.flatnonzero(row_totals(matrix, Scaling("presence")) == 0)
    if len(empty):
        warnings.warn(
            f"{len(empty):,} rows of X hold no entry other than zero (the first is row {empty[0]}); under the "
            "multinomial likelihood such a row has nothing to explain, and all of them get the same posterior",
            stacklevel=3,
        )
