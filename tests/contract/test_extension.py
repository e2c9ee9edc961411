"""A likelihood, a pair network, a family, a metric and a command, each made outside the package and added by a line."""

import ast
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import torch
import typer
from torch import nn
from typer.testing import CliRunner

import corrvae
from corrvae import CorrelatedVAE, Pairwise, load
from corrvae.cli import app, command
from corrvae.errors import FolderError
from corrvae.model import Posterior
from corrvae.model.families import FAMILIES, Family
from corrvae.model.objectives import edge_term
from corrvae.nn import LIKELIHOODS, PAIR_NETWORKS, EntrywiseLikelihood, PairNetwork, RowsLinear
from corrvae.scoring import METRICS, Metric
from support.pairs import QUICK, paired_rows

DATA = paired_rows()
X, GRAPH = DATA.X, DATA.graph
EDGES = GRAPH.id_pairs


# A likelihood


class Laplace(EntrywiseLikelihood):
    """Each feature is Laplace with a scale of its own: log p = -|x - output| / b - log(2 b)."""

    domain = "finite numbers"
    default_normalize = "l2"

    def __init__(self, n_features):
        super().__init__(n_features)
        self.log_scale = nn.Parameter(torch.zeros(n_features))

    def entry_log_prob(self, outputs, values, columns):
        scale = self.log_scale[columns]
        return -(values - outputs).abs() * torch.exp(-scale) - scale - np.log(2.0)

    def mean(self, outputs, totals=None):
        return outputs

    def sample(self, outputs, generator, totals=None):
        drawn = generator.laplace(outputs.cpu().numpy(), self.log_scale.exp().detach().cpu().numpy())
        return torch.from_numpy(drawn).to(outputs)

    def admits(self, values):
        return np.isfinite(values)


def test_a_likelihood(monkeypatch, tmp_path):
    monkeypatch.setitem(LIKELIHOODS, "laplace", Laplace)
    model = CorrelatedVAE(**QUICK, likelihood="laplace", learning_rate=1e-2).fit(X, graph=GRAPH)
    assert (model.likelihood_, model.normalize_) == ("laplace", "l2")
    assert model.history_["reconstruction"][-1] > model.history_["reconstruction"][0]
    assert (model.model_.likelihood.log_scale != 0).all()
    assert model.sample(3, random_state=0).features.shape == (3, 5)
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(load(tmp_path / "run").reconstruct(X), model.reconstruct(X))
    monkeypatch.delitem(LIKELIHOODS, "laplace")
    with pytest.raises(FolderError, match="the likelihood 'laplace', which is not registered"):
        load(tmp_path / "run")


def test_a_likelihood_that_is_not_registered_is_passed(tmp_path):
    model = CorrelatedVAE(**QUICK, likelihood=Laplace).fit(X, graph=GRAPH)
    model.save(tmp_path / "run")
    with pytest.raises(FolderError, match=r"the likelihood .*Laplace; pass it: load\(\.\.\., likelihood=\.\.\.\)"):
        load(tmp_path / "run")
    again = load(tmp_path / "run", likelihood=Laplace)
    assert again.score(X, graph=GRAPH) == model.score(X, graph=GRAPH)


# A pair network


class PairDot(PairNetwork):
    """a_k = sum over a few directions of u_ik v_jk, with v = u: symmetric by itself."""

    def __init__(self, n_features, n_components, *, hidden=(3,)):
        super().__init__()
        self.n_components = n_components
        self.first = RowsLinear(n_features, n_components * hidden[0])

    def prepare(self, rows):
        return self.first(rows)

    def pre_activation(self, prepared, first, second):
        return (prepared[first] * prepared[second]).unflatten(1, (self.n_components, -1)).sum(2)


def test_a_pair_network(monkeypatch, tmp_path):
    monkeypatch.setitem(PAIR_NETWORKS, "dot", PairDot)
    model = CorrelatedVAE(**QUICK, family=Pairwise("dot", hidden=(4,))).fit(X, graph=GRAPH)
    first = model.model_.family.pair_network.first
    Y = (X - X.mean(0)) / X.std(0)  # what the model sees under the Gaussian likelihood
    u = (Y.astype(np.float32) @ first.weight.detach().numpy() + first.bias.detach().numpy()).reshape(60, 2, 4)
    i, j = GRAPH.edges.T
    np.testing.assert_allclose(model.posterior().correlation(EDGES), np.tanh((u[i] * u[j]).sum(2)), atol=1e-4)
    assert model.kneighbors(n_neighbors=3).ids.shape == (60, 3)
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(*(one.posterior().correlation(EDGES) for one in (model, load(tmp_path / "run"))))


# A family


class Uniform(Family):
    """Any two points have the same correlation, one learned number for each dimension."""

    needs_graph = True

    def __init__(self, start=0.1):
        super().__init__()
        self.start = start

    def build(self, n_features, n_components, *, normalize, dropout):
        self.a = nn.Parameter(torch.full((n_components,), float(self.start)))

    def terms(self, model, batch, generator=None):
        _, marginals, terms, kl = model.autoencode(batch, generator)
        terms.add("singleton", -1.0, kl, batch.vertex_weights)
        if batch.edges is None:
            return terms
        a = self.a.expand(len(batch.edges), -1)
        edge = edge_term(marginals, batch.edges, model.prior(marginals.mean), a)
        return terms.add("edge", -1.0, edge, batch.edge_weights)

    def posterior(self, model, mean, stddev, table, ids=None, graph=None):
        return UniformPosterior(self.a, mean, stddev, ids=ids, tau=model.tau_values(mean.shape[1]))


class UniformPosterior(Posterior):
    is_correlated = True

    def __init__(self, a, mean, stddev, *, ids=None, tau=None):
        super().__init__(mean, stddev, ids=ids, tau=tau)
        self.a = a.detach()

    def take(self, positions):
        marginals = self.mean[positions], self.stddev[positions]
        return UniformPosterior(self.a, *marginals, ids=self.ids[positions], tau=self.tau)

    def pre_activation(self, positions):
        return np.tile(self.a.double().numpy(), (len(positions), 1))

    def vectors(self, positions):
        return torch.zeros(len(positions), 1)

    def block(self, vectors_i, vectors_j):
        return self.a.expand(len(vectors_i), len(vectors_j), -1)


def test_a_family(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="family must be one of"):
        CorrelatedVAE(**QUICK, family="uniform").fit(X, graph=GRAPH)
    monkeypatch.setitem(FAMILIES, "uniform", Uniform)
    model = CorrelatedVAE(**QUICK, family="uniform", learning_rate=1e-2).fit(X, graph=GRAPH)
    rho = np.tanh(model.model_.family.a.detach().double().numpy())
    assert (rho > np.tanh(0.1)).all()  # edges are correlated
    np.testing.assert_allclose(model.posterior().correlation([("v0", "v59")]), [rho])
    found = model.kneighbors(ids=["v0"], n_neighbors=59)
    m, s = model.embedding_.astype(float), model.stddev_.astype(float)
    distances = ((m[0] - m) ** 2 + s[0] ** 2 + s**2 - 2 * rho * s[0] * s).sum(1)[1:]
    np.testing.assert_allclose(found.scores[0], np.sort(distances), rtol=1e-4)
    assert np.isfinite(model.score(X, graph=GRAPH))
    assert len(model.match(["v0", "v1"], ["v2", "v3"])) == 2
    with pytest.raises(ValueError, match="family='uniform' learns from edges"):
        CorrelatedVAE(**QUICK, family="uniform").fit(X)
    for name, family in (("name", "uniform"), ("object", Uniform(start=0.3))):
        fitted = CorrelatedVAE(**QUICK, family=family).fit(X, graph=GRAPH)
        fitted.save(tmp_path / name)
        again = load(tmp_path / name)
        np.testing.assert_array_equal(*(one.posterior().correlation(EDGES) for one in (fitted, again)))
    assert again.family.start == 0.3
    assert again.get_params()["family__start"] == 0.3
    monkeypatch.delitem(FAMILIES, "uniform")
    for name in ("name", "object"):
        with pytest.raises(FolderError, match="the family 'uniform', which is not registered"):
            load(tmp_path / name)


def test_a_family_that_is_not_registered_is_passed(tmp_path):
    model = CorrelatedVAE(**QUICK, family=Uniform(0.2)).fit(X, graph=GRAPH)
    model.save(tmp_path / "run")
    with pytest.raises(FolderError, match=r"the family .*Uniform; pass it: load\(\.\.\., family=\.\.\.\)"):
        load(tmp_path / "run")
    again = load(tmp_path / "run", family=Uniform(0.2))
    np.testing.assert_array_equal(*(one.posterior().correlation(EDGES) for one in (model, again)))


# A metric


def manhattan(queries, candidates):
    return torch.cdist(queries.mean, candidates.mean, p=1)


@pytest.mark.parametrize("family", ["independent", "pairwise"])
def test_a_metric(monkeypatch, family):
    monkeypatch.setitem(METRICS, "manhattan", Metric("manhattan", manhattan, larger_is_better=False))
    model = CorrelatedVAE(**QUICK, family=family).fit(X, graph=GRAPH)
    scores, ids = model.kneighbors(n_neighbors=4, metric="manhattan")
    literal = np.abs(model.embedding_[:, None] - model.embedding_).sum(2)
    np.fill_diagonal(literal, np.inf)
    np.testing.assert_allclose(scores, np.sort(literal, axis=1)[:, :4], rtol=1e-5)
    assert ids[:, 0].tolist() == GRAPH.ids[literal.argmin(1)].tolist()
    assert model.rank_pairs(EDGES, metric="manhattan").ranks.min() >= 1
    calibration = model.calibrate_links([("v0", "v9"), ("v2", "v8")], metric="manhattan", random_state=0)
    assert model.score_pairs(EDGES, metric="manhattan", probability=calibration).probabilities.shape == (29,)


# A command


def test_a_command(tmp_path, monkeypatch):
    before = list(app.registered_commands)

    @command()
    def width(run: Annotated[Path, typer.Argument(help="The run.")]) -> None:
        """Print the latent dimension of a model."""
        typer.echo(load(run).n_components)

    try:
        CorrelatedVAE(**QUICK).fit(X).save(tmp_path / "run")
        done = CliRunner().invoke(app, ["width", str(tmp_path / "run")])
        assert (done.exit_code, done.stdout) == (0, "2\n")
        missing = CliRunner().invoke(app, ["width", str(tmp_path / "none")])
        assert missing.exit_code == 2
        assert missing.stderr == f"{tmp_path / 'none'}: there is no such folder\n"
        assert "Print the latent dimension of a model." in CliRunner().invoke(app, ["--help"]).stdout
    finally:
        app.registered_commands[:] = before
    assert CliRunner().invoke(app, ["width", str(tmp_path / "run")]).exit_code == 2


# Nobody else asks

PACKAGE = Path(corrvae.__file__).parent
OF_FAMILIES = {"Pairwise", "PairwisePosterior", "Independent", "pair_network", "pair_inputs", "pairwise", "independent"}
# Where families are made from words: the command line's options, and the recipes of the paper's experiments.
MAKERS = {"cli/fit.py", "experiments/recipes.py", "experiments/models.py"}
EXPORTS = {"__init__.py", "nn/__init__.py"}


def asked(path):
    """Names of families that a module imports, uses, or compares with."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias) and node.name != "pairwise":  # that of itertools
            yield node.name
        elif isinstance(node, ast.Compare):
            yield from (part.value for part in (node.left, *node.comparators) if isinstance(part, ast.Constant))


def test_nothing_but_a_family_asks_which_family_it_is():
    checked = 0
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if place.startswith("model/families/") or place in MAKERS | EXPORTS or place == "nn/pair_networks.py":
            continue
        found = {name for name in asked(path) if isinstance(name, str)} & OF_FAMILIES
        assert found - ({"pairwise"} if place == "nn/layers.py" else set()) == set(), place
        checked += 1
    assert checked > 50
