"""The commands that ask a trained run: embeddings, neighbours, items, links, matches, clusters, scores, facts."""

from collections import Counter
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from corrvae.cli.app import command, keyword, notify, show_progress
from corrvae.cli.output import (
    IdColumnOption,
    JsonOption,
    LayoutOption,
    MetricOption,
    OutOption,
    RandomStateOption,
    RunArgument,
    check_out,
    number_or_word,
    print_document,
    read_points,
    write_answer,
)

_POINTS = "Table of points that are not those of training."
FeaturesOption = Annotated[Path | None, typer.Option("--features", help=_POINTS)]
_LINKS = "Links of the points, with each other and those of training; for a run of --family joint."
GraphOption = Annotated[Path | None, typer.Option("--graph", help=_LINKS)]
_IDS = "Points to ask about: ids separated by commas, or a file of ids; otherwise all."
IdsOption = Annotated[str | None, typer.Option("--ids", help=_IDS)]
_ATLAS = "Write a map instead, .parquet: id, x, y, neighbors, as embedding-atlas opens."

_RUN = Parameter("run", Parameter.POSITIONAL_OR_KEYWORD, annotation=RunArgument)
_OUT = keyword("out", OutOption, None)
_READING = [
    keyword("features", FeaturesOption, None),
    keyword("id_column", IdColumnOption, None),
    keyword("layout", LayoutOption, "auto"),
]


def question(function: Callable[..., tuple[Any, dict[str, Any]]]) -> Callable[..., None]:
    """Add a command that asks a trained run for a table.

    The function gets the model and its own options; it returns the table, and facts that hold for all of it. Where to
    write is an option of all. A parameter ``X`` adds the options that read points: ``--features`` and how (None: the
    points of training).
    """
    parameters = signature(function).parameters
    own = [each.replace(kind=Parameter.KEYWORD_ONLY) for name, each in parameters.items() if name not in ("model", "X")]
    reading = _READING if "X" in parameters else []

    @wraps(function)
    def ask(run: Path, out: Path | None, as_json: bool, **options: Any) -> None:
        check_out(out)
        if (atlas := options.get("atlas")) is not None:
            check_out(atlas, (".parquet",))
            out = atlas
        from corrvae import load

        model = load(run)
        if reading:
            path, how = options.pop("features"), {name: options.pop(name) for name in ("id_column", "layout")}
            options["X"] = None if path is None else read_points(model, path, **how)
        table, facts = function(model, **options)
        write_answer(table, out, as_json=as_json, **facts)

    json = keyword("as_json", JsonOption, False)
    ask.__signature__ = Signature([_RUN, *own, _OUT, *reading, json])  # pyright: ignore
    return command()(ask)


@question
def embed(
    model: Any,
    X: Any,
    graph: GraphOption = None,
    atlas: Annotated[Path | None, typer.Option(help=_ATLAS)] = None,
) -> tuple[Any, dict[str, Any]]:
    """Embed points: the mean z0, z1, ... and the standard deviation s0, s1, ... of each, under its id.

    Example: corrvae embed run/ --features new.csv --out z.parquet

    Example: corrvae embed run/ --graph newfriends.csv

    Example: corrvae embed run/ --atlas map.parquet
    """
    import pyarrow as pa

    from corrvae.io import ids_as_column

    points = model.posterior(X, graph)
    if atlas is not None:
        return _atlas(points), {}
    means = {f"z{k}": column for k, column in enumerate(points.mean.T)}
    deviations = {f"s{k}": column for k, column in enumerate(points.stddev.T)}
    table = pa.table({"id": ids_as_column(points.ids), **means, **deviations})
    return table, {"n_components": points.n_components}


@question
def neighbors(
    model: Any,
    X: Any,
    n_neighbors: Annotated[int, typer.Option("--n-neighbors", "-k", min=1, help="Neighbours of each point.")] = 10,
    ids: IdsOption = None,
    graph: GraphOption = None,
    candidates: Annotated[
        str | None, typer.Option(help="Training points to search among, as in --ids; otherwise all.")
    ] = None,
    metric: MetricOption = None,
    unlinked: Annotated[bool, typer.Option("--unlinked", help="Leave out those that the graph links.")] = False,
) -> tuple[Any, dict[str, Any]]:
    """Find the exact nearest neighbours of points among those of training, best first; never a point itself.

    Each row has the score, the parts that sum to it, and which scores are better.

    Example: corrvae neighbors run/ -k 5 --ids ann,bob

    Example: corrvae neighbors run/ --features new.csv --out neighbors.parquet
    """
    exclude: Any = "self" if X is None or X.ids is not None else None
    if unlinked:
        if model.graph_ is None:
            raise ValueError("the run was trained without a graph: there are no links to leave out")
        exclude = model.graph_
    found = model.kneighbors(
        X,
        graph=graph,
        ids=_read_ids(ids, _ids_of(model, X, graph)),
        n_neighbors=n_neighbors,
        metric=metric,
        candidates=_read_ids(candidates, model.ids_),
        exclude=exclude,
        progress=show_progress(),
    )
    n_found = found.scores.shape[-1]
    if n_found < n_neighbors:
        notify(f"{n_neighbors:,} neighbours were asked for, but there are {n_found:,}")
    return found.to_table(), _facts(found)


@question
def recommend(
    model: Any,
    X: Any,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Features for each point.")] = 10,
    ids: IdsOption = None,
    items: Annotated[
        str | None, typer.Option(help="Features to choose among: names separated by commas, or a file; otherwise all.")
    ] = None,
    seen: Annotated[bool, typer.Option("--seen", help="Recommend also what a point has already.")] = False,
) -> tuple[Any, dict[str, Any]]:
    """Recommend items to users: the features that points most probably have, of those they do not have yet.

    Each row has the point, the rank, the feature and its expected value: under the multinomial and the Bernoulli
    likelihood a probability.

    Example: corrvae recommend run/ -k 10 --ids ann,bob

    Example: corrvae recommend run/ --features new.csv --out recommended.csv
    """
    found = model.recommend(
        X,
        ids=_read_ids(ids, _ids_of(model, X)),
        k=k,
        exclude_seen=not seen,
        items=_read_ids(items, model.feature_names_, "features"),
    )
    return found.to_table(), {}


@question
def similar(
    model: Any,
    features: Annotated[
        str | None, typer.Argument(help="Features: names separated by commas, or a file of names; otherwise all.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Features for each.")] = 10,
) -> tuple[Any, dict[str, Any]]:
    """Find the features most like others, such as items like an item: those that the decoder treats alike.

    The score is the correlation of their outputs over the latent space.

    Example: corrvae similar run/ tea,coffee -k 5
    """
    wanted = _read_ids(features, model.feature_names_, "features")
    return model.similar_features(wanted, k=k).to_table(), {}


@question
def edges(model: Any) -> tuple[Any, dict[str, Any]]:
    """List the edges of the training graph, those first that the data support least.

    Each row has the edge's weight, the conductance with which forests are drawn, and its term T: what the edge costs
    the bound, in nats. It is above 0 where the two points are unlike.

    Example: corrvae edges run/ --out edges.csv
    """
    return model.edge_support_.to_table(), {}


@question
def links(
    model: Any,
    X: Any,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="How many links.")] = 1000,
    metric: Annotated[
        str | None,
        typer.Option(help="The score; otherwise log_odds, and expected_distance where a pair network reads features."),
    ] = None,
    graph: GraphOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add common neighbours by name, the cosine of the rows, the distance.")
    ] = False,
) -> tuple[Any, dict[str, Any]]:
    """Find the most likely new links: the best of all pairs that the graph does not link, exactly.

    Each row has the score, the parts that sum to it, and which scores are better. Links of training points by the score
    that is used otherwise have the probability of a link too, if the graph has 40 links or more.

    Example: corrvae links run/ --top 100 --out links.csv

    Example: corrvae links run/ --top 20 --explain
    """
    import numpy as np
    import pyarrow as pa

    from corrvae.data import exclusions
    from corrvae.io import read_graph
    from corrvae.plots.facts import explain_pairs, link_metric, link_probability
    from corrvae.scoring import best_pairs

    if explain and not (X is None and graph is None):
        raise typer.BadParameter("--explain is for points of training: leave out --features and --graph")
    points = model.posterior(X, graph)
    if X is None and graph is None and model.graph_ is not None:
        points = points.take(np.flatnonzero(~model.graph_.is_group))
    metric = link_metric(model, features_given=X is not None) if metric is None else metric
    known = model.graph_ if X is None or X.ids is not None else None
    linked = exclusions(points.ids, points.ids, known)
    if graph is not None:
        given: Any = exclusions(points.ids, points.ids, read_graph(graph))
        linked = given if linked is None else given + linked
    pairs, _ = best_pairs(points, metric, top, exclude=linked, progress=show_progress())
    if len(pairs) < top:
        notify(f"{top:,} links were asked for, but there are {len(pairs):,} pairs that are not linked")
    probability = None
    if X is None and graph is None and metric == link_metric(model):
        probability, held_out = link_probability(model, np.random.default_rng(0))
        if probability is not None and not held_out:
            notify("probabilities are learned from links that training has seen: for new links they are often too high")
    scored = model.score_pairs(points.ids[pairs], X, graph=graph, metric=metric, probability=probability)
    table = scored.to_table().add_column(0, "rank", pa.array(np.arange(1, len(pairs) + 1)))
    if explain:
        positions = model.posterior().pair_positions(points.ids[pairs])
        columns = zip(("common_neighbors", "row_cosine", "distance"), explain_pairs(model, positions), strict=True)
        for name, values in columns:
            table = table.append_column(name, pa.array(values))
    return table, _facts(scored)


@question
def match(
    model: Any,
    left: Annotated[Path | None, typer.Option(help="Table of features of one list of points.")] = None,
    right: Annotated[Path | None, typer.Option(help="Table of features of the other.")] = None,
    left_ids: Annotated[
        str | None, typer.Option(help="Points of training as one list: ids separated by commas, or a file of ids.")
    ] = None,
    right_ids: Annotated[str | None, typer.Option(help="Points of training as the other list.")] = None,
    caliper: Annotated[
        str | None,
        typer.Option(help="The worst score of a pair; 0.5sd: that of means half a deviation apart."),
    ] = None,
    ratio: Annotated[int, typer.Option(min=1, help="Right points for each left one, at most.")] = 1,
    replace: Annotated[bool, typer.Option("--replace", help="A right point may be in several pairs.")] = False,
    exact_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE:COLUMN",
            help="Values that partners must share, from a table whose first column holds ids; may be repeated.",
        ),
    ] = None,
    metric: MetricOption = None,
    unmatched: Annotated[
        Path | None, typer.Option(help="File to write the points without a partner to, and why they have none.")
    ] = None,
    id_column: IdColumnOption = None,
    layout: LayoutOption = "auto",
) -> tuple[Any, dict[str, Any]]:
    """Match the points of two lists, one to one with the best sum of scores, or as the options ask.

    Each row has the margin to the best other partner, the score, the parts that sum to it, and which scores are better.

    Example: corrvae match run/ --left a.csv --right b.csv

    Example: corrvae match run/ --left-ids treated.txt --right-ids others.txt --caliper 0.5sd --exact-on people.csv:town
    """
    check_out(unmatched)
    import numpy as np
    import pyarrow as pa

    from corrvae.io import write_table

    X, names = None, [np.empty(0, np.int64)] * 2
    if left is not None and right is not None and left_ids is None and right_ids is None:
        X, names = _two_lists(model, [left, right], id_column=id_column, layout=layout)
    elif left_ids is not None and right_ids is not None and left is None and right is None:
        names = [_read_ids(given, model.ids_) for given in (left_ids, right_ids)]
    else:
        raise ValueError("pass both lists as tables (--left and --right), or both as ids (--left-ids and --right-ids)")
    # Each table has ids of its own, and the same id in both says nothing: its points are numbered for the matching.
    numbers = np.split(np.arange(sum(map(len, names))), [len(names[0])])
    called = names if X is None else numbers
    found = model.match(
        called[0],
        called[1],
        X,
        caliper=None if caliper is None else number_or_word(caliper),
        ratio=ratio,
        replace=replace,
        exact_on=_exact_values(exact_on, names, called) if exact_on else None,
        metric=metric,
        progress=show_progress(),
    )
    if not found.exact:
        notify("too many pairs to look at all: this is the best matching among each point's nearest candidates")
    table = found.to_table()
    named = dict(zip(np.concatenate(called).tolist(), np.concatenate(names).tolist(), strict=True))
    for place, name in enumerate(("left", "right")):
        table = table.set_column(place, name, pa.array([named[value] for value in table.column(name).to_pylist()]))
    counts: dict[str, dict[str, int]] = {}
    alone: list[dict[str, Any]] = []
    for side, ids in zip(("left", "right"), called, strict=True):
        reasons = {value: found.unmatched[value] for value in ids.tolist() if value in found.unmatched}
        counts[side] = dict(Counter(reasons.values()))
        alone += [{"id": named[value], "side": side, "why": reason} for value, reason in reasons.items()]
        if reasons:
            why = ", ".join(f"{reason} ({count:,})" for reason, count in counts[side].items())
            notify(f"{len(reasons):,} of {len(ids):,} {side} points are not matched: {why}")
    if unmatched is not None:
        columns = {key: [row[key] for row in alone] for key in ("id", "side", "why")}
        write_table(pa.table(columns), unmatched)
    return table, {**_facts(found), "caliper": found.caliper, "exact": found.exact, "unmatched": counts}


@question
def cluster(
    model: Any,
    X: Any,
    n_clusters: Annotated[int, typer.Option("--n-clusters", "-k", min=1, help="How many groups.")] = 2,
    method: Annotated[str, typer.Option(help="auto, spectral or kmeans.")] = "auto",
    random_state: RandomStateOption = 0,
) -> tuple[Any, dict[str, Any]]:
    """Divide points into groups, numbered by size from 0.

    Up to 20,000 points this is spectral clustering of their nearest neighbours by expected distance; beyond, k-means of
    their means.

    Example: corrvae cluster run/ -k 4 --out clusters.csv
    """
    import numpy as np
    import pyarrow as pa

    from corrvae.cli.clusters import find_clusters

    points = model.posterior(X)
    if X is None and model.graph_ is not None:
        points = points.take(np.flatnonzero(~model.graph_.is_group))
    labels, route = find_clusters(
        points, n_clusters, method=method, random_state=random_state, progress=show_progress()
    )
    notify(route)
    return pa.table({"id": pa.array(points.ids.tolist()), "cluster": labels}), {"route": route}


@question
def score(
    model: Any,
    X: Any,
    pairs: Annotated[Path, typer.Option(help="File whose first two columns are ids.")],
    metric: MetricOption = None,
) -> tuple[Any, dict[str, Any]]:
    """Score given pairs of points, in the order of their file.

    Each row has the score, the parts that sum to it, and which scores are better.

    Example: corrvae score run/ --pairs pairs.csv --metric log_odds
    """
    import numpy as np

    from corrvae.io import find_ids, read_pairs

    listed, known = read_pairs(pairs), _ids_of(model, X)
    places = find_ids(known, listed.ids.ravel()).reshape(-1, 2)
    if (places < 0).any():
        row, side = np.argwhere(places < 0)[0].tolist()
        raise listed.error(row, _unknown(listed.ids[row, side], known))
    found = model.score_pairs(known[places], X, metric=metric)
    return found.to_table(), _facts(found)


@command()
def info(run: RunArgument, as_json: JsonOption = False) -> None:
    """Print what a run is: its model, its data, how training ended, its parameters, its size.

    Example: corrvae info run/
    """
    from corrvae import load
    from corrvae.plots.facts import as_words, describe

    files = [path for path in run.rglob("*") if path.is_file()]
    facts = {**describe(load(run)), "folder": {"path": str(run), "bytes": sum(path.stat().st_size for path in files)}}
    if as_json:
        print_document(facts)
        return
    for subject, known in facts.items():
        typer.echo(subject)
        for name, value in known.items():
            typer.echo(f"  {name.replace('_', ' ')}: {as_words(value)}")


def _two_lists(model: Any, paths: list[Path], **options: Any) -> tuple[Any, list[Any]]:
    """Return the features of two tables as one, and the ids of each table."""
    import numpy as np
    from scipy import sparse

    from corrvae.io import Features

    sides = [read_points(model, path, **options) for path in paths]
    matrices: list[Any] = [side.matrix for side in sides]
    if all(isinstance(matrix, np.ndarray) for matrix in matrices):
        both: Any = np.concatenate(matrices)
    else:
        both = sparse.csr_array(sparse.vstack([sparse.csr_array(matrix) for matrix in matrices]))
    ids = [np.arange(side.n_rows) if side.ids is None else side.ids for side in sides]
    return Features(both, None, sides[0].names), ids


def _exact_values(given_columns: list[str], names: list[Any], called: list[Any]) -> dict[Any, tuple[Any, ...]]:
    """Return the values of some columns (FILE:COLUMN) by what points are called in the matching."""
    from corrvae.cli.draw import read_labels
    from corrvae.errors import DataFileError

    values: dict[Any, tuple[Any, ...]] = {}
    for given in given_columns:
        path, _, column = given.rpartition(":")
        if not path:
            raise ValueError(f"--exact-on {given}: pass FILE:COLUMN, as in people.csv:town")
        for side, ids in zip(names, called, strict=True):
            columns = read_labels(side, Path(path))
            if column not in columns:
                listed = ", ".join(map(repr, [*columns][:20])) or "none"
                raise DataFileError(path, f"there is no column {column!r} beside the ids; there are {listed}")
            for name, value, known in zip(side.tolist(), ids.tolist(), columns[column], strict=True):
                if known in (None, ""):
                    raise DataFileError(path, f"column {column!r} has no value for the id {str(name)!r}")
                values[value] = (*values.get(value, ()), known)
    return values


def _atlas(points: Any) -> Any:
    """Return the map of points and their 15 nearest: rows from 0, with squared distances."""
    import numpy as np
    import pyarrow as pa
    from scipy import sparse

    from corrvae.plots.layout import project, spring_layout
    from corrvae.scoring import nearest

    oneself, width = sparse.csr_array(sparse.eye_array(len(points))), max(1, min(15, len(points) - 1))
    rows, distances = nearest(points, points, points.usual_metric, width, exclude=oneself, progress=show_progress())
    places = spring_layout(rows, project(points.mean)[0])
    near = [
        {"ids": found[found >= 0].tolist(), "distances": away[found >= 0].tolist()}
        for found, away in zip(rows, distances.astype(np.float64), strict=True)
    ]
    return pa.table({"id": pa.array(points.ids.tolist()), "x": places[:, 0], "y": places[:, 1], "neighbors": near})


def _facts(found: Any) -> dict[str, str]:
    return {"metric": found.metric, "better": "higher" if found.larger_is_better else "lower"}


def _ids_of(model: Any, X: Any, graph: Any = None) -> Any:
    import numpy as np

    if graph is not None:
        return model.posterior(X, graph).ids
    if X is None:
        return model.ids_
    return np.arange(X.n_rows) if X.ids is None else X.ids


def _read_ids(given: str | None, known: Any, kind: str = "points") -> Any:
    """Return ids that are separated by commas, or those of a file, as the known ones are spelled; None stays None."""
    if given is None:
        return None
    import numpy as np

    from corrvae.io import find_ids, read_ids

    path = Path(given)
    parts = [part.strip() for part in given.split(",")]
    wanted = read_ids(path) if path.is_file() else np.array([*parts, None], dtype=object)[:-1]
    if not path.is_file() and not all(parts):
        raise ValueError(f"{given!r} is no list of ids separated by commas, and there is no file of this name")
    places = find_ids(known, wanted)
    if (places < 0).any():
        raise ValueError(_unknown(wanted[places < 0][0], known, kind))
    return known[places]


def _unknown(name: Any, known: Any, kind: str = "points") -> str:
    example = f", whose ids are like {known[:1].tolist()[0]!r}" if len(known) else ""
    return f"the id {str(name)!r} is not among the {len(known):,} {kind}{example}"
