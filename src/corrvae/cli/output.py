"""What commands have in common: their options, and where an answer goes.

A table goes to the file of ``--out``, in the format of its suffix, or to stdout as CSV, or as one JSON document.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from corrvae.cli.app import is_main, notify
from corrvae.errors import FolderError

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a trained model, as corrvae fit writes it.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="File to write: .csv, .tsv, .parquet or .json; otherwise CSV to stdout.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="The score: expected_distance, log_odds, mean_distance, cosine or inner_product; otherwise "
        "expected_distance, and mean_distance for family=joint.",
    ),
]
IdColumnOption = Annotated[
    str | None, typer.Option("--id-column", help="Column of ids in a table of features; otherwise the first.")
]
Layout = Literal["auto", "wide", "long"]
LayoutOption = Annotated[
    Layout,
    typer.Option("--layout", help="Of a table of features: auto, wide (a row a point) or long (id, item, value)."),
]
ConductanceOption = Annotated[
    str,
    typer.Option(
        "--conductance",
        metavar="NAME",
        help="Column of the graph with the strengths of its edges; auto: the third, if it holds positive numbers that "
        "differ; none.",
    ),
]
DirectedOption = Annotated[
    Literal["mutual"] | None,
    typer.Option("--directed", help="mutual: only pairs that are there in both directions are edges."),
]
RandomStateOption = Annotated[int, typer.Option("--random-state", help="Seed of what is random.")]

TABLES = (".csv", ".tsv", ".parquet", ".json")


def number_or_word(value: Any) -> int | float | str:
    """Return an option that is a number or a word such as auto."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return str(value)


def graph_options(conductance: str, directed: Literal["mutual"] | None) -> dict[str, Any]:
    """Return the parameters of `corrvae.io.read_graph` for the options of a command."""
    return {"conductance": None if conductance == "none" else conductance, "directed": directed}


def check_out(out: Path | None, suffixes: tuple[str, ...] = TABLES) -> None:
    """Raise before anything is computed if a file cannot be written."""
    if out is None:
        return
    if out.suffix.lower() not in suffixes:
        listed = " or ".join([", ".join(suffixes[:-1])] * (len(suffixes) > 1) + [suffixes[-1]])
        raise FolderError(out, f"its name must end in {listed}, which decides what is written")
    if not out.parent.is_dir():
        raise FolderError(out.parent, "there is no such folder to write to; make it first")


def write_answer(table: Any, out: Path | None, *, as_json: bool, **facts: Any) -> None:
    """Write a table to a file or to stdout; `facts` hold for the whole table, and are no columns of a JSON document."""
    from corrvae.io import write_table

    if not is_main():
        return
    if out is not None:
        write_table(table, out)
        n_rows = table.num_rows
        print_written(out, f"{n_rows:,} rows are in {out}", as_json=as_json, n_rows=n_rows, **facts)
    elif as_json:
        kept = table.drop_columns([name for name in table.column_names if name in facts])
        sys.stdout.write(json.dumps(facts, ensure_ascii=False).removesuffix("}") + (", " if facts else "") + '"rows": ')
        write_table(kept, "-", file_format="json")
        sys.stdout.write("}\n")
    else:
        write_table(table, "-")


def print_written(out: Path, sentence: str, *, as_json: bool, **facts: Any) -> None:
    """Print where something was written: a sentence on stderr, or one JSON document."""
    if as_json:
        print_document({"out": str(out), **facts})
    else:
        notify(sentence)


def print_document(document: dict[str, Any]) -> None:
    """Print JSON on stdout."""
    if is_main():
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")


def read_points(model: Any, path: Path, *, id_column: str | None, layout: Layout) -> Any:
    """Read a table of features with the columns that a model was trained on, and ids of the kind of the model's."""
    from corrvae.graphs.ids import id_array
    from corrvae.io import Features, find_ids, read_features

    names = getattr(model, "feature_names_in_", None)
    wanted = None if names is None else list(names)
    found = read_features(path, id_column=id_column, layout=layout, names=wanted, missing=model.missing)
    if found.ids is None:
        return found
    places = find_ids(model.ids_, found.ids)  # 7 where the model has "7" becomes "7"
    ids = [model.ids_[place] if place >= 0 else name for place, name in zip(places, found.ids.tolist(), strict=True)]
    return Features(found.matrix, id_array(ids, "ids"), found.names)
