"""The data of `corrvae fit`: features and graph read, put together, and described."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, final

import numpy as np

from corrvae import __version__
from corrvae.errors import DataFileError
from corrvae.graphs import CorrelationGraph
from corrvae.reading.cells import refuse_empty_cells, uneven_columns
from corrvae.reading.features import Features
from corrvae.reading.joining import Joined, are_first_line, join, name_some
from corrvae.reading.kinds import choose_likelihood
from corrvae.reading.opening import read_features
from corrvae.tables import fingerprint

Say = Callable[[str], None]


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run trains on.

    Attributes
    ----------
    features
        The table.
    graph
        The graph, vertex i being row i; ``None`` for a plain variational auto-encoder.
    found
        What there was to find, for the run's file: numbers of rows and edges, and codes of both.
    """

    features: Features
    graph: CorrelationGraph | None
    found: dict[str, Any]


def read_inputs(settings: Mapping[str, Any], say: Say) -> Inputs:
    """Read features and graph as settings tell, and say what was found.

    Parameters
    ----------
    settings
        As `corrvae.cli.settings.resolve` gives them.
    say
        Takes a sentence.
    """
    path = Path(settings["features"])
    features = read_features(path, id_column=settings["id_column"], layout=settings["layout"], say=say)
    say(f"{path}: {_count(features.n_rows, 'row')} of {_count(features.n_columns, 'feature')}")
    if settings["empty_cells"] == "error":
        refuse_empty_cells(path, features)
    joined = None if settings["graph"] is None else _read_graph(Path(settings["graph"]), settings, features, say)
    found = {
        "corrvae": __version__,
        "rows": features.n_rows,
        "columns": features.n_columns,
        "edges": 0 if joined is None else joined.graph.n_edges,
        "only_in_features": 0 if joined is None else len(joined.only_rows),
        "only_in_graph": 0 if joined is None else len(joined.only_vertices),
        "features_code": _code(fingerprint(features.matrix), features.ids, features.names),
        "graph_code": None if joined is None else _code(joined.graph.edges, joined.graph.conductances),
    }
    return Inputs(features, None if joined is None else joined.graph, found)


def settle_likelihood(settings: Mapping[str, Any], features: Features, say: Say) -> dict[str, Any]:
    """Choose, where settings leave it open, the likelihood and what networks do to features before they read them.

    A likelihood that was asked for and cannot explain the features is refused.
    """
    settled = dict(settings)
    choice = choose_likelihood(features.matrix)
    reason = ""
    if settled["likelihood"] == "auto":
        settled["likelihood"], reason = choice.likelihood, f", because {choice.reason}"
    usual = {"multinomial": "l2", "poisson": "log1p", "negative_binomial": "log1p"}.get(settled["likelihood"], "raw")
    normalize = settled["normalize"]
    if isinstance(normalize, list):
        settled["normalize"] = [usual if part == "auto" else part for part in normalize]
    elif normalize == "auto":
        settled["normalize"] = usual
    _check_likelihood(Path(settings["features"]), settled["likelihood"], features)
    if reason:
        say(f"likelihood {settled['likelihood']}{reason} (--likelihood chooses another)")
    if settled["likelihood"] == "gaussian" and (advice := uneven_columns(features)):
        say(advice)
    return settled


def check_unchanged(settings: Mapping[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with files that are not what they were when the run began."""
    for name in ("features", "graph"):
        if before.get(f"{name}_code") != now[f"{name}_code"]:
            raise DataFileError(
                Path(settings[name]),
                "has changed since the run began, so the run cannot go on; put the file back as it was, or begin "
                "another run",
            )


def _check_likelihood(path: Path, likelihood: str, features: Features) -> None:
    from corrvae.nn import make_likelihood

    try:
        make_likelihood(likelihood, features.n_columns).check(features.matrix)
    except ValueError as error:
        raise DataFileError(path, str(error)) from error


def _read_graph(path: Path, settings: Mapping[str, Any], features: Features, say: Say) -> Joined:
    strings = features.ids is not None and features.ids.dtype.kind != "i"
    conductance = settings["conductance"]
    graph = CorrelationGraph.from_file(
        path,
        columns=settings["graph_columns"],
        conductance=conductance,
        directed=settings["directed"],
        # ids such as 007 are strings in either file, or in neither
        id_kind="string" if strings else None,
        keep_isolated=True,
    )
    if not graph.n_vertices:
        raise DataFileError(path, "there are no edges in it; leave the graph out for a plain VAE")
    joined = join(features, graph)
    say(f"{path}: {_count(graph.n_edges, 'edge')} between {_count(graph.n_vertices, 'point')}")
    if len(joined.only_vertices) == graph.n_vertices:
        ids = np.arange(features.n_rows) if features.ids is None else features.ids
        raise DataFileError(
            path,
            f"none of its ids ({name_some(graph.ids)}) is an id of the features ({name_some(ids)}), so they cannot be "
            "matched",
        )
    header = are_first_line(joined.only_vertices, path, settings["graph_columns"], conductance)
    _tell_ids(path, joined, settings["missing"], ", perhaps the header of the graph file" if header else "", say)
    if graph.n_edges and not joined.graph.n_edges:
        raise DataFileError(
            path,
            f"none of its {_count(graph.n_edges, 'edge')} has both ends among the features, so it teaches nothing; "
            "are the two files what they should be, and not swapped?",
        )
    return joined


def _tell_ids(path: Path, joined: Joined, missing: str, guess: str, say: Say) -> None:
    rows, vertices = joined.only_rows, joined.only_vertices
    if missing == "error" and (len(rows) or len(vertices)):
        places = ((vertices, "the graph", guess), (rows, "the features", ""))
        found = [place for place in places if len(place[0])]
        said = [f"{_count(len(ids), 'id')} only in {where} ({name_some(ids)}{note})" for ids, where, note in found]
        verb = "is" if len(found) == len(found[0][0]) == 1 else "are"
        raise DataFileError(path, f"there {verb} {' and '.join(said)}; --missing drop goes on")
    if len(vertices):
        lost = _count(joined.n_edges_lost, "edge")
        say(
            f"{_count(len(vertices), 'id')} of the graph without features left out, with {lost}: "
            f"{name_some(vertices)}{guess}"
        )
    if len(rows):
        say(
            f"{_count(len(rows), 'id')} of the features not in the graph, kept as points without edges: "
            f"{name_some(rows)}"
        )


def _code(*parts: Any) -> str:
    code = blake2b(digest_size=16)
    for part in parts:
        numbers = isinstance(part, np.ndarray) and part.dtype != object
        data = np.ascontiguousarray(part).data if numbers else repr(part.tolist() if hasattr(part, "tolist") else part)
        code.update(data.encode() if isinstance(data, str) else data)
        code.update(b"|")
    return code.hexdigest()


def _count(number: int, thing: str) -> str:
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"
