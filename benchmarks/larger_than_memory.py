"""Do features have to fit into memory? Mapped features are fitted, embedded and searched within a limit.

    python benchmarks/larger_than_memory.py [--gigabytes 2] [--limit 0.4] [--folder DIR]

A CSR matrix of so many gigabytes of entries is written in pieces and opened as three mapped arrays. One process then
fits CVAE_corr, embeds all rows, saves and loads the model, and finds the neighbours of some rows. It fails if it ever
has more memory of its own (RssAnon: not what is mapped from files, which the system can drop) than the limit, above
what it had after its imports.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fragile import OwnMemory
from measure import versions, write_results

COLUMNS, PER_ROW, PIECE = 5_000, 400, 5_000
ENTRY = np.dtype(np.float32).itemsize


def write(folder: Path, gigabytes: float) -> int:
    """Write random counts piece by piece, as `np.save` writes the arrays of a CSR matrix; return the number of rows."""
    n_rows = int(gigabytes * 1e9 / (2 * ENTRY * PER_ROW) // PIECE + 1) * PIECE
    n_entries = n_rows * PER_ROW
    index = np.int32 if n_entries < 2**31 else np.int64
    folder.mkdir()
    np.save(folder / "shape.npy", np.array([n_rows, COLUMNS]))
    np.save(folder / "indptr.npy", np.arange(0, n_entries + 1, PER_ROW, dtype=index))
    parts = {"data": np.float32, "indices": index}
    for number in range(n_rows // PIECE):
        rng = np.random.default_rng(number)
        # Each row has the items that follow its first one, at growing distances: sorted, distinct, and quick to make.
        steps = 1 + rng.integers(0, COLUMNS // PER_ROW - 1, (PIECE, PER_ROW), dtype=np.int32)
        made = {"data": 1.0 + rng.poisson(0.5, (PIECE, PER_ROW)), "indices": np.cumsum(steps, axis=1) - 1}
        for name, kind in parts.items():
            path = folder / f"{name}.npy"
            mode = "w+" if number == 0 else "r+"
            whole = np.lib.format.open_memmap(path, mode=mode, dtype=kind, shape=(n_entries,) if number == 0 else None)
            whole[number * PIECE * PER_ROW : (number + 1) * PIECE * PER_ROW] = made[name].ravel()
            del whole  # so that no piece stays mapped
    return n_rows


def use(folder: Path, out: Path, n_rows: int) -> dict[str, float]:
    """Fit, embed, save, load and search; return the seconds of each."""
    from corrvae import CorrelatedVAE, CorrelationGraph, Pairwise, load
    from corrvae.io import open_mapped

    seconds, begun = {}, time.perf_counter()

    def note(name: str) -> None:
        nonlocal begun
        seconds[f"{name}_seconds"] = round(time.perf_counter() - begun, 1)
        begun = time.perf_counter()

    matrix = open_mapped(folder)
    near = np.arange(0, n_rows - 1, 2)
    graph = CorrelationGraph(np.stack([near, near + 1], axis=1), n_rows)
    settings = {"likelihood": "multinomial", "hidden": (100,), "max_steps": 100, "device": "cpu", "random_state": 0}
    model = CorrelatedVAE(10, family=Pairwise("metric"), **settings).fit(matrix, graph=graph)
    note("fit")
    np.testing.assert_allclose(model.transform(matrix)[:100], model.embedding_[:100], atol=1e-5)
    note("embed")
    model.save(out)
    model = load(out)
    note("save_and_load")
    found = model.kneighbors(ids=np.arange(100), n_neighbors=20, progress=False)
    if found.ids.shape != (100, 20):
        raise AssertionError(f"found {found.ids.shape}")
    note("search")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of entries, 8 bytes each")
    parser.add_argument("--limit", type=float, default=0.4, help="gigabytes of own memory above the imports")
    parser.add_argument("--folder", type=Path, default=None, help="where to write the features; a temporary folder")
    parser.add_argument("--no-record", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        # glibc keeps what is freed, by chance more or less of it; with this it returns large arrays at once.
        os.environ["MALLOC_MMAP_THRESHOLD_"] = "65536"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    import torch._dynamo  # noqa: F401

    import corrvae.estimator  # noqa: F401
    from corrvae.io import folder

    # On a small scale, smaller arrays of the saved model are mapped too.
    folder.MAPPED_BYTES = min(folder.MAPPED_BYTES, int(options.limit * 1e9 / 20))
    with TemporaryDirectory(dir=options.folder) as place:
        n_rows = write(Path(place, "features"), options.gigabytes)
        size = sum(path.stat().st_size for path in Path(place, "features").iterdir())
        with OwnMemory() as memory:
            seconds = use(Path(place, "features"), Path(place, "run"), n_rows)
    row = {
        "rows": n_rows,
        "gigabytes_of_entries": round(size / 1e9, 3),
        "limit_gigabytes": options.limit,
        "own_gigabytes": round(memory.most / 1e9, 3),
        **seconds,
    }
    print(row)
    if memory.most > options.limit * 1e9:
        sys.exit(f"{memory.most / 1e9:.2f} GB of own memory, more than {options.limit} GB")
    if not options.no_record:
        command = f"python benchmarks/larger_than_memory.py --gigabytes {options.gigabytes:g} --limit {options.limit:g}"
        write_results("larger_than_memory", [row], command=command, versions=versions("corrvae", "numpy", "torch"))


if __name__ == "__main__":
    main()
