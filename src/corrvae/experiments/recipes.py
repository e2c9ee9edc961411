"""Recipes: which models a task trains, on which data, with which settings. All numbers of the experiments are here.

"recommended" was chosen on validation data, except for gamma of CVAE_corr on links, which is the paper's. "paper" has
what the paper states; it leaves the number of steps and the widths of hidden layers open. "quick" is small enough for
a demonstration and needs no download. Clustering has no validation part: in all its recipes, the number of steps and
the size of PCA were chosen on the very data that are scored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, final

Settings = Mapping[str, Any]


@final
@dataclass(frozen=True)
class Entry:
    """A model of a recipe.

    Methods: "vae" and "cvae" are a `corrvae.CorrelatedVAE` without and with the graph; "graph_sage",
    "variational_graph", "neural_common_neighbors", "principal_components" and "halves_plda" are functions of
    `corrvae.experiments.baselines`;
    "latents" are the true latents; those of `corrvae.graphs.heuristics` score by the graph alone, and "best_heuristic"
    is the best of these times 1 + the cosine of two rows;
    "size_and_overlap" is the rule that learns nothing (`corrvae.experiments.matching`); "popularity", "item_neighbours"
    and "ease" recommend (`corrvae.experiments.recommend`), with the best of their ``settings`` on validation users.
    Parameters are those of the method; ``family__gamma_mi`` is a parameter of the posterior family, as in scikit-learn.
    """

    model: str  # its name on the command line
    label: str  # and in tables
    method: str
    parameters: Settings = field(default_factory=dict)
    metric: str = "expected_distance"  # how two points are compared
    augment: bool = False  # whether each user's halves are drawn again for every batch
    graph_features: bool = False  # whether rows of the training graph's adjacency are appended to the features


@final
@dataclass(frozen=True)
class Recipe:
    """All models of a task, in the order of the tables, with their settings and the default number of seeds."""

    task: str
    name: str
    data: Settings
    entries: tuple[Entry, ...]
    n_seeds: int

    @property
    def models(self) -> tuple[str, ...]:
        """The models' names, in the order of the tables."""
        return tuple(entry.model for entry in self.entries)

    def choose(self, models: Iterable[str]) -> "Recipe":
        """Return the recipe with some of its models, in the order of the tables."""
        wanted = list(models)
        for model in wanted:
            if model not in self.models:
                raise ValueError(
                    f"the {self.name} recipe for {self.task} has no model {model!r}; it has {', '.join(self.models)}"
                )
        return replace(self, entries=tuple(entry for entry in self.entries if entry.model in wanted))


def find_recipe(task: str, name: str) -> Recipe:
    """Return the recipe of a task by name."""
    tasks = sorted({known for known, _ in RECIPES})
    if task not in tasks:
        raise ValueError(f"there is no task {task!r}; there are {', '.join(tasks)}")
    if (task, name) not in RECIPES:
        known = ", ".join(recipe for of, recipe in RECIPES if of == task)
        raise ValueError(f"there is no recipe {name!r} for {task}; there are {known}")
    return RECIPES[task, name]


# What the paper states for every task, except for the widths of hidden layers.
_PAPER = {
    "n_components": 100,
    "hidden": (300,),
    "tau": 0.99,
    "normalize": "none",
    "batch_size": 64,
    "edge_batch_size": 256,
    "learning_rate": 1e-3,
}
_BERNOULLI = {**_PAPER, "likelihood": "bernoulli"}
_MULTINOMIAL = {**_PAPER, "likelihood": "multinomial"}


def _perceptron(gamma_kl: float, gamma_mi: float, *, width: int = 1000, pair_batch: int | None = 256) -> Settings:
    return {
        "family": "pairwise",
        "family__network": "perceptron",
        "family__hidden": (width,),
        "family__gamma_kl": gamma_kl,
        "family__gamma_mi": gamma_mi,
        "family__pair_batch": pair_batch,
    }


_METRIC = {
    "family": "pairwise",
    "family__network": "metric",
    "family__gamma_kl": 0.0,
    "family__gamma_mi": 10.0,
    "family__pair_batch": None,
}


def _models(vae: Settings, corr: Settings, *, ind: Settings | None = None, **options: Any) -> tuple[Entry, ...]:
    return (
        Entry("vae", "VAE", "vae", vae, **options),
        Entry("ind", "CVAE_ind", "cvae", vae if ind is None else ind, **options),
        Entry("corr", "CVAE_corr", "cvae", {**vae, **corr}, **options),
    )


# ---- clustering -----------------------------------------------------------------------------------------------------

_TREE = {"name": "tree", "n_points": 10_000, "n_features": 1000}
# The latents that the tree was drawn with: a ceiling, because no model sees them.
_TRUTH = Entry("truth", "true z, same pipeline", "latents", {}, "mean_distance")


def _principal_components(n_components: int) -> Entry:
    label = f"PCA of x, {n_components} component{'' if n_components == 1 else 's'}"
    return Entry("pca", label, "principal_components", {"n_components": n_components}, "mean_distance")


_SAGE = Entry("sage", "GraphSAGE", "graph_sage", {"n_components": 100, "n_negatives": 20}, "mean_distance")
_TREE_BASELINES = (
    _SAGE,
    # at ten times the rate, the default, its loss on a tree jumps at first and ends higher
    Entry("vgae", "VGAE", "variational_graph", {"n_components": 100, "learning_rate": 1e-3}, "mean_distance"),
    _principal_components(20),
    _TRUTH,
)
_TREE_STEPS = {**_BERNOULLI, "max_steps": 3000}
_QUICK_TREE = {**_BERNOULLI, "n_components": 10, "max_steps": 500}
_CLUSTERING = (
    Recipe("clustering", "recommended", _TREE, (*_models(_TREE_STEPS, _METRIC), *_TREE_BASELINES), n_seeds=5),
    Recipe("clustering", "paper", _TREE, (*_models(_TREE_STEPS, _perceptron(0.1, 0.1)), *_TREE_BASELINES), n_seeds=1),
    Recipe(
        "clustering",
        "quick",
        {"name": "tree", "n_points": 1000, "n_features": 500, "n_components": 10},
        # on so few points the groups are in the first direction, and further ones hide them
        (*_models(_QUICK_TREE, _perceptron(0.1, 0.1, width=300)), _principal_components(1), _TRUTH),
        n_seeds=2,
    ),
)

# ---- links ----------------------------------------------------------------------------------------------------------

_EPINIONS = {"name": "epinions", "min_ratings": 100}


def _lsa(name: str, n_components: int) -> Entry:
    parameters = {"n_components": n_components, "weighting": "idf", "center": False}
    return Entry(name, f"LSA of x, {n_components} components", "principal_components", parameters, "cosine")


_LSA = _lsa("lsa", 20)
_LINK_NETWORKS = (_SAGE, Entry("vgae", "VGAE", "variational_graph", {"n_components": 100}, "inner_product"))
_LINK_BASELINES = (
    _LSA,
    Entry("degree", "degree", "degree"),
    Entry("common", "common neighbours", "common_neighbors"),
    Entry("adamic", "Adamic-Adar", "adamic_adar"),
    Entry("allocation", "resource allocation", "resource_allocation"),
    Entry("allocation3", "resource allocation, 3 steps", "three_step_allocation"),
    Entry("pagerank", "personalised PageRank", "personalized_pagerank"),
    Entry("katz", "Katz", "katz"),
    Entry("best", "the best of these times (1 + cosine)", "best_heuristic"),
)
_LINKS_PAPER = {**_MULTINOMIAL, "max_steps": 10_000}
# Averages of the weights after 4,000 large steps rank better than the weights after 20,000 of the paper's steps.
_LINKS_BASE = {
    **_MULTINOMIAL,
    "batch_size": 128,
    "edge_batch_size": 512,
    "learning_rate": 3e-3,
    "average_steps": 500,
    "max_steps": 4000,
}
_QUICK_COUNTS = {**_MULTINOMIAL, "n_components": 30, "max_steps": 600}


def _graph_model(settings: Settings) -> Entry:
    """Return a model that the paper does not have."""
    return Entry("ind+graph", "CVAE_ind, graph features", "cvae", settings, graph_features=True)


_LINKS_MODELS = _models(_LINKS_PAPER, _perceptron(1000.0, 1000.0))
_LINKS_GRAPH = Entry(
    "corr+graph",
    "CVAE_corr, graph inputs",
    "cvae",
    {
        **_MULTINOMIAL,
        "max_steps": 2000,
        "family": "pairwise",
        "family__inputs": "graph",
        "family__gamma_kl": 0.0,
        "family__gamma_mi": 1.0,
    },
    "log_odds",
)
# Validation edges drawn uniformly, and hidden from what ranks the test edges.
_OLD_PROTOCOL = {**_EPINIONS, "protocol": "first edition"}
_LINKS = (
    Recipe(
        "links",
        "recommended",
        _EPINIONS,
        (
            *_models(
                {**_MULTINOMIAL, "max_steps": 30_000},
                {**_LINKS_BASE, **_perceptron(1000.0, 1000.0, width=100), "max_steps": 2000},
                ind=_LINKS_BASE,
            ),
            _LINKS_GRAPH,
            *_LINK_NETWORKS,
            Entry("ncn", "NCN", "neural_common_neighbors", {"width": 32, "n_steps": 200}),
            *_LINK_BASELINES,
        ),
        n_seeds=3,
    ),
    Recipe(
        "links",
        "old-protocol",
        _OLD_PROTOCOL,
        (
            *_models({**_MULTINOMIAL, "max_steps": 30_000}, {})[:2],
            _LINKS_MODELS[2],
            _LINKS_GRAPH,
            _graph_model({**_MULTINOMIAL, "max_steps": 9_000}),
            *_LINK_NETWORKS,
            *_LINK_BASELINES,
        ),
        n_seeds=3,
    ),
    Recipe("links", "ciao", {"name": "ciao", "min_ratings": 20}, (_LINKS_GRAPH, *_LINK_BASELINES), n_seeds=3),
    Recipe("links", "paper", _OLD_PROTOCOL, (*_LINKS_MODELS, *_LINK_NETWORKS, *_LINK_BASELINES), n_seeds=1),
    Recipe(
        "links",
        "quick",
        {"name": "small", "n_users": 1200, "n_items": 200},
        (
            *_models(_QUICK_COUNTS, _perceptron(100.0, 100.0, width=300)),
            _graph_model(_QUICK_COUNTS),
            *_LINK_NETWORKS,
            *_LINK_BASELINES,
        ),
        n_seeds=1,
    ),
)

# ---- matching -------------------------------------------------------------------------------------------------------

# The paper keeps movies with 1000 ratings of 20 million; the other sizes keep the proportion.
MIN_RATINGS = MappingProxyType({"ml-1m": 50, "ml-10m": 500, "ml-20m": 1000, "ml-25m": 1250, "ml-32m": 1600})
_MOVIELENS = {"name": "ml-1m", "min_ratings": MIN_RATINGS["ml-1m"]}
# min_stddev: all points about equally certain, or a half of few movies would be far from everything
_MATCHING_BASE = {**_MULTINOMIAL, "normalize": "l2", "min_stddev": 0.2, "max_steps": 10_000}
# from the linear model in closed form on, with other halves that compete for being the one; the same for all data
_COMPETING = {
    "n_components": 128,
    "hidden": (300,),
    "init": "linear",
    "tau": "learned_per_dimension",
    "likelihood": "multinomial",
    "normalize": "l2",
    "batch_size": 64,
    "edge_batch_size": 512,
    "learning_rate": 1e-3,
    "dropout": 0.0,
    "max_epochs": 1,
    "family": "independent",
    "family__contrast": 2000.0,
}
_MATCHING_PAPER = {**_MULTINOMIAL, "max_steps": 5000}
_MATCHING_BEST = Entry("competing", "CVAE_ind, competing candidates", "cvae", _COMPETING, "log_odds", augment=True)
_MATCHING_BASELINES = (
    Entry("plda", "exact PLDA, 30 dimensions", "halves_plda", {"n_components": 30, "ridge": 0.01}, "log_odds"),
    # with settings chosen on two catalogues
    Entry("plda-two", "exact PLDA, 100 dimensions", "halves_plda", {"n_components": 100, "ridge": 0.3}, "log_odds"),
    _LSA,
    _lsa("lsa50", 50),
    Entry("rule", "rule that learns nothing", "size_and_overlap"),
)
_MATCHING = (
    Recipe(
        "matching",
        "recommended",
        _MOVIELENS,
        (
            *_models(
                _MATCHING_BASE,
                # edges teach the encoder through the pair network, which sees half of the movies
                {**_METRIC, "dropout": 0.0, "family__dropout": 0.5},
                # twice the widths of the paper's recipe; more steps fit the training users and match others less well
                ind={**_MATCHING_BASE, "n_components": 200, "hidden": (600,), "max_steps": 8000},
                metric="log_odds",
                augment=True,
            ),
            _MATCHING_BEST,
            *_MATCHING_BASELINES,
        ),
        n_seeds=5,
    ),
    Recipe("matching", "paper", _MOVIELENS, (*_models(_MATCHING_PAPER, _perceptron(1.0, 1.0)), _LSA), n_seeds=1),
    Recipe(
        "matching",
        "quick",
        {"name": "small", "n_users": 1500, "n_items": 300},
        (
            *_models(
                {**_QUICK_COUNTS, "normalize": "l2"},
                {"normalize": "none", **_perceptron(0.0, 30.0, width=300, pair_batch=None)},
                augment=True,
            ),
            *_MATCHING_BASELINES,
        ),
        n_seeds=1,
    ),
    # the same on other data: products with so many ratings, users with ten of these
    *(
        Recipe(
            "matching",
            name,
            {"name": name, "min_ratings": min_ratings, "min_items": 10},
            (_MATCHING_BEST, *_MATCHING_BASELINES),
            n_seeds=3,
        )
        for name, min_ratings in (("ciao", 20), ("epinions", 100))
    ),
)
TWO_CATALOGUES = "-two-catalogues"
"""What the name of a recipe for matching ends with that cuts the list of items in two."""
_TWICE = tuple(
    replace(recipe, name=recipe.name + TWO_CATALOGUES, data={**recipe.data, "protocol": "two-catalogues"})
    for recipe in _MATCHING
    if recipe.name != "paper"
)

# ---- recommendation -------------------------------------------------------------------------------------------------


_RIDGES, _SIZES = (50.0, 100.0, 200.0, 400.0, 800.0, 1600.0), (20, 50, 100, 200, 500)


def _recommending(settings: Settings) -> tuple[Entry, ...]:
    return (
        Entry("vae", "VAE, linear, masked", "vae", settings),
        Entry("popularity", "popularity", "popularity"),
        Entry("neighbours", "item neighbours", "item_neighbours", {"settings": _SIZES}),
        Entry("ease", "EASE", "ease", {"settings": _RIDGES}),
    )


_MULT_VAE = {
    "n_components": 200,
    "hidden": (600,),
    "likelihood": "multinomial",
    "normalize": "l2",
    "dropout": 0.5,
    "beta": 0.2,
    "batch_size": 500,
    "learning_rate": 1e-3,
    "warmup_steps": 500,
    "max_steps": 1000,
}
_LINEAR = {
    **_MULT_VAE,
    "n_components": 512,
    "hidden": (),
    "dropout": 0.0,
    "masking": 0.7,
    "beta": 0.01,
    "batch_size": 256,
    "learning_rate": 3e-3,
    "warmup_steps": 200,
    "max_steps": 600,
    "average_steps": 100,
}
# The same for all methods that can use it: the weight of friends' items, and of popularity.
_FRIENDS = {"friends": (0.03, 0.1, 0.3, 1.0)}
_POPULAR = {"popularity": (1e-6, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)}
_CIAO: Settings = {"likelihood": "multinomial", "normalize": "l2", "max_steps": 600, "warmup_steps": 200}
_RECOMMEND = (
    Recipe(
        "recommend",
        "recommended",
        {"name": "ml-1m", "min_rating": 4.0},
        (*_recommending(_LINEAR), Entry("multvae", "Mult-VAE", "vae", _MULT_VAE)),
        n_seeds=3,
    ),
    Recipe(
        "recommend",
        "ciao",
        {"name": "ciao", "min_ratings": 20},
        (
            Entry("joint", "Joint", "cvae", {**_CIAO, "family": "joint", "family__strength": 1.0}),
            Entry("ind", "CVAE_ind", "cvae", _CIAO),
            Entry("vae", "VAE", "vae", _CIAO),
            Entry("popularity", "popularity", "popularity"),
            Entry("neighbours", "item neighbours", "item_neighbours", {"settings": _SIZES, **_POPULAR}),
            Entry("ease", "EASE", "ease", {"settings": _RIDGES, **_POPULAR}),
            Entry("friends", "friends' items", "friends", {**_FRIENDS, **_POPULAR}),
            Entry(
                "ease+friends", "EASE of own and friends' items", "ease", {"settings": _RIDGES, **_FRIENDS, **_POPULAR}
            ),
        ),
        n_seeds=3,
    ),
    Recipe(
        "recommend",
        "quick",
        {"name": "small", "n_users": 1200, "n_items": 200},
        _recommending({**_LINEAR, "n_components": 30, "max_steps": 300}),
        n_seeds=1,
    ),
)

# ---- robustness -----------------------------------------------------------------------------------------------------


def _robust(**settings: Any) -> tuple[Entry, ...]:
    adaptive = {**settings, "forests": "adaptive"}
    return (
        Entry("vae", "VAE", "vae", settings),
        Entry("ind", "CVAE_ind", "cvae", settings),
        Entry("ind+adaptive", "CVAE_ind, adaptive forests", "cvae", adaptive),
        # expected distances of joint posteriors favour points that many others tell of
        Entry("joint", "Joint", "cvae", {**settings, "family": "joint"}, "mean_distance"),
        Entry("joint+adaptive", "Joint, adaptive forests", "cvae", {**adaptive, "family": "joint"}, "mean_distance"),
    )


_ROBUSTNESS = (
    Recipe("robustness", "recommended", {"name": "citeseer"}, _robust(), n_seeds=3),
    Recipe("robustness", "tree", {"name": "tree", "n_points": 1000, "n_features": 1000}, _robust(), n_seeds=3),
    Recipe("robustness", "ciao", {"name": "ciao", "min_ratings": 20}, _robust(), n_seeds=3),
    Recipe(
        "robustness",
        "quick",
        {"name": "tree", "n_points": 300, "n_features": 60},
        _robust(n_components=8, hidden=(50,), max_epochs=200),
        n_seeds=1,
    ),
)

RECIPES: Mapping[tuple[str, str], Recipe] = MappingProxyType(
    {
        (recipe.task, recipe.name): recipe
        for recipe in (*_CLUSTERING, *_LINKS, *_MATCHING, *_TWICE, *_RECOMMEND, *_ROBUSTNESS)
    }
)
