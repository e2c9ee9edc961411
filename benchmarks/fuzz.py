"""Does any file confuse a reader? Real files, mutated at random, for every reader that corrvae has.

Whatever a file holds, the outcome is a result whose parts fit together or a `CorrvaeError` that names the file: never
another exception, never more than SECONDS of the processor for one input, never more memory than MEMORY beyond what
importing took. Run as a program, this is the long form: 10,000 inputs for each reader.
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

import fragile
from corrvae import CorrelationGraph, load
from corrvae.answers.naming import read_ids, read_pairs
from corrvae.cli.settings import read_config
from corrvae.datasets.archives import open_member
from corrvae.datasets.columns import RATINGS_CSV, read_integers
from corrvae.errors import CorrvaeError, DataFileError
from corrvae.experiments.records import read_record
from corrvae.persistence import _document_checksum
from corrvae.pictures.run_colours import colour_by_column
from corrvae.reading import annotated as annotated_data
from corrvae.reading import extraction, read_features
from corrvae.shards import open_shards, write_shards
from measure import merged, versions, write_results
from mutations import change_document, mutate
from nursery import Call, Nursery
from samples import MADE_WITH_H5PY, make_sources

SECONDS, MEMORY = 20, 3 << 30

Folder = Path
Reader = Callable[[Folder, random.Random], None]


class TooLongError(Exception):
    """An input that took longer than it may."""


# Readers: each makes an input from a folder of real files, and reads it


def edges(folder: Folder, chance: random.Random) -> None:
    """Graphs from text and Parquet, also in gzip."""
    place = _mutated(folder / "edges", folder / "input", chance)
    options: dict[str, Any] = {}
    if chance.random() < 0.3:
        options["id_kind"] = chance.choice(("integer", "string"))
    if chance.random() < 0.3:
        options["conductance"] = 2
    graph = CorrelationGraph.from_file(place, **options)
    found, limit = graph.edges, graph.n_vertices
    _check(found.shape == (graph.n_edges, 2) and bool(((found >= 0) & (found < limit)).all()), "edges")
    _check(len({*graph.ids.tolist()}) == limit, "ids")


def tables(folder: Folder, chance: random.Random) -> None:
    """Features from text and Parquet."""
    _features(_mutated(folder / "tables", folder / "input", chance), chance)


def arrays(folder: Folder, chance: random.Random) -> None:
    """Features from NPZ and NPY."""
    _features(_mutated(folder / "arrays", folder / "input", chance), chance)


def _features(place: Path, chance: random.Random) -> None:
    found = read_features(place, layout=chance.choice(("auto", "auto", "wide", "long")))
    rows, columns = found.n_rows, found.n_columns
    _check(rows > 0 and columns > 0 and found.matrix.dtype == np.float32, "matrix")
    if isinstance(found.matrix, np.memmap):  # what stays on the disk is checked when it is read
        return
    numbers = found.matrix.data if sparse.issparse(found.matrix) else found.matrix
    _check(not np.isinf(np.asarray(numbers)).any(), "infinite numbers")
    _check(found.ids is None or len({*found.ids.tolist()}) == rows, "ids")
    _check(found.names is None or len({*found.names}) == columns, "names")


def settings(folder: Folder, chance: random.Random) -> None:
    """Settings in TOML."""
    _check(isinstance(read_config(_mutated(folder / "settings", folder / "input.toml", chance)), dict), "settings")


def archives(folder: Folder, chance: random.Random) -> None:
    """Ratings in zip archives."""
    place = _mutated(folder / "archives", folder / "input", chance)
    with open_member(place, ("ratings.csv",)) as member:
        columns = read_integers(place, member, RATINGS_CSV, ("userId", "movieId"))
    _check(len(columns[0]) == len(columns[1]) > 0, "columns")


def models(folder: Folder, chance: random.Random) -> None:
    """Model folders, damaged; half of them with sizes and checksums that fit again, as an attacker would write them."""
    place = _mutated_folder(folder / "models", folder / "input", chance)
    model = load(place)
    n_rows = len(model.ids_)
    _check(model.embedding_.shape == model.stddev_.shape == (n_rows, model.n_components), "embedding")
    _check(bool(np.isfinite(model.transform(fragile.data()[0])).all()), "transform")


def checkpoints(folder: Folder, chance: random.Random) -> None:
    """Checkpoints, likewise; training goes on from them."""
    place = folder / "input"
    _mutated_folder(folder / "checkpoints", place / "step-000000003", chance)
    for other in place.iterdir():
        if other.name != "step-000000003":
            _remove(other)
    counts, graph = fragile.data()
    model = fragile.estimator(5).fit(counts, graph=graph, checkpoint=place, checkpoint_steps=100)
    _check(bool(np.isfinite(model.embedding_).all()), "embedding")


def lists(folder: Folder, chance: random.Random) -> None:
    """Ids, pairs of ids, and columns to colour by."""
    place = _mutated(folder / "lists", folder / "input", chance)
    match chance.randrange(3):
        case 0:
            _check(all(read_ids(str(place))), "ids")
        case 1:
            _check(read_pairs(place).ids.shape[1] == 2, "pairs")
        case _:
            found = colour_by_column(f"{place}:town", np.arange(60))
            _check(len(found.groups) == 60 and {*found.groups.tolist()} <= found.names.keys(), "groups")


def records(folder: Folder, chance: random.Random) -> None:
    """Records of experiments, half of them changed as JSON."""
    place = folder / "input" / "links" / "quick" / "ind" / "seed-0.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    whole = next((folder / "records").iterdir()).read_bytes()
    if chance.random() < 0.5:
        document = json.loads(whole)
        change_document(document, chance)
        place.write_text(json.dumps(document))
    else:
        place.write_bytes(mutate(whole, chance))
    _check(read_record(place).seed == 0, "seeds")


def shards(folder: Folder, chance: random.Random) -> None:
    """Folders of shards, damaged as model folders are; all rows are read, and some of them through maps."""
    place = _mutated_folder(folder / "shards", folder / "input", chance)
    found = open_shards(place)  # without a look at checksums, which most damage would not get past
    matrix, (n_rows, n_columns) = found.matrix, found.matrix.shape
    _check(found.ids is None or len({*found.ids.tolist()}) == n_rows, "ids")
    seen = 0
    for begin, block in matrix.pieces():
        _check(begin == seen and block.shape[1] == n_columns, "pieces")
        block.check_format(full_check=True)
        seen += block.shape[0]
    _check(seen == n_rows, "rows")
    picked = matrix.pick(np.array([chance.randrange(n_rows) for _ in range(5)]))
    _check(len(picked.values) == len(picked.columns) == int(picked.offsets[-1]), "picked rows")
    _check(read_features(place).n_rows == n_rows, "features")


def annotated(folder: Folder, chance: random.Random) -> None:
    """Annotated data; mostly in a process that is forked and not started, which takes a tenth of the time."""
    place = _mutated(folder / "annotated", folder / "input", chance)
    started = annotated_data._extract_apart
    if chance.random() < 0.98:
        annotated_data._extract_apart = _extract_forked
    try:
        _features(place, chance)
    except DataFileError as error:
        if "has failed" in error.problem:  # it was to end with an answer, or by a signal
            raise AssertionError(error.problem) from error
        raise
    finally:
        annotated_data._extract_apart = started


def _extract_forked(path: Path, id_column: str | None, folder: Path) -> str:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            extraction.main(str(path), str(folder), id_column)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return annotated_data.ended_by(-code, extraction.seconds_for(path)) if code < 0 else "the process has failed"


_READERS = (edges, tables, arrays, settings, archives, models, checkpoints, lists, records, shards)
_OPTIONAL = (annotated,) if MADE_WITH_H5PY else ()
READERS: dict[str, Reader] = {reader.__name__: reader for reader in (*_READERS, *_OPTIONAL)}


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"{what} do not fit together")


def _mutated(sources: Path, place: Path, chance: random.Random) -> Path:
    source = chance.choice(sorted(sources.iterdir()))
    data = source.read_bytes()
    # inside a compressed file too: most damage to its outside is found by its checksum
    if source.suffix == ".gz" and chance.random() < 0.7:
        data = gzip.compress(mutate(gzip.decompress(data), chance), 1)
    else:
        data = mutate(data, chance)
    if place.is_dir():
        _remove(place)
    place.write_bytes(data)
    return place


def _mutated_folder(source: Path, place: Path, chance: random.Random) -> Path:
    if place.exists():
        _remove(place)
    place.mkdir(parents=True)
    files = sorted(file.relative_to(source) for file in source.rglob("*") if file.is_file())
    for file in files:
        (place / file).parent.mkdir(exist_ok=True)
        (place / file).write_bytes((source / file).read_bytes())
    chosen = place / chance.choice(files)
    if chosen.name == "config.json" and chance.random() < 0.9:
        document = json.loads(chosen.read_bytes())
        document.pop("checksum")
        for _ in range(chance.choice((1, 1, 2))):
            change_document(document, chance)
        document["checksum"] = _document_checksum(document)
        chosen.write_text(json.dumps(document))
        return place
    chosen.write_bytes(mutate(chosen.read_bytes(), chance))
    if chance.random() < 0.8 and chosen.parent == place and chosen.name != "config.json":
        _seal(place, chosen)
    return place


def _seal(place: Path, changed: Path) -> None:
    document = json.loads((place / "config.json").read_bytes())
    document.pop("checksum")
    data = changed.read_bytes()
    document["files"][changed.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    document["checksum"] = _document_checksum(document)
    (place / "config.json").write_text(json.dumps(document))


def _remove(place: Path) -> None:
    import shutil

    shutil.rmtree(place)


# Running


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLongError(f"took more than {SECONDS} s")

    # of the processor: how busy the machine is with other things says nothing of an input
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attack(reader: str, sources: str, first: int, count: int, seed: int) -> dict[str, int]:
    """Read mutated files number `first` and on; raise at the first that breaks a promise, with what repeats it."""
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    warnings.simplefilter("ignore")
    outcomes = {"read": 0, "refused": 0}
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in READERS:
            (folder / name).symlink_to(Path(sources) / name)
        for number in range(first, first + count):
            try:
                with _time_limit():
                    READERS[reader](folder, random.Random(f"{seed}/{reader}/{number}"))
                outcomes["read"] += 1
            except CorrvaeError as error:
                if str(folder) not in str(error):
                    raise AssertionError(f"{reader} {number} of seed {seed}: no file is named: {error}") from error
                outcomes["refused"] += 1
            except BaseException as error:
                raise AssertionError(f"{reader} {number} of seed {seed}: {type(error).__name__}: {error}") from error
    return outcomes


def run(nursery: Nursery, reader: str, sources: Path, count: int, seed: int, piece: int = 500) -> dict[str, int]:
    """Attack a reader in children, so that what crashes the interpreter itself is seen too."""
    total = {"read": 0, "refused": 0}
    for first in range(0, count, piece):
        size = min(piece, count - first)
        arguments = {"reader": reader, "sources": str(sources), "first": first, "count": size, "seed": seed}
        (ending,) = nursery.run(Call("fuzz:attack", arguments, timeout=3600.0))
        if ending.code != 0:
            raise AssertionError(f"{reader} from {first} ended with {ending.code}:\n{ending.errors[-4000:]}")
        total = {name: total[name] + ending.result[name] for name in total}
    return total


def prepare() -> None:
    """Load compiled kernels before the first fork."""
    fragile.prepare()
    with TemporaryDirectory() as folder:
        write_shards(f"{folder}/x", [np.eye(3)], n_columns=3)
        open_shards(f"{folder}/x").matrix.pick(np.arange(3))
    if _OPTIONAL:
        import_module("h5py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", choices=[*READERS], action="append")
    options = parser.parse_args()
    rows = []
    with Nursery("fuzz") as nursery, TemporaryDirectory() as place:
        make_sources(Path(place, "sources"))
        for reader in options.reader or READERS:
            begun = time.monotonic()
            outcome = run(nursery, reader, Path(place, "sources"), options.inputs, options.seed)
            seconds = round(time.monotonic() - begun, 1)
            rows.append(
                {"reader": reader, "inputs": options.inputs, **outcome, "seed": options.seed, "seconds": seconds}
            )
            print(rows[-1], flush=True)
    about = {"command": "python benchmarks/fuzz.py", "seconds_an_input": SECONDS, "bytes_beyond_start": MEMORY}
    write_results(
        "fuzz",
        merged("fuzz", "reader", rows),
        **about,
        versions=versions("corrvae", "numpy", "scipy", "torch", "pyarrow"),
    )


if __name__ == "__main__":
    main()
