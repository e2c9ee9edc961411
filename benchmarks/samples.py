"""Real files of every kind that corrvae reads, in folders named after the readers of ``fuzz.py``."""

import gzip
import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import fragile
from corrvae.experiments.records import Record, write_record
from corrvae.shards import write_shards

PLAIN = ("edges", "tables", "arrays", "settings", "archives", "lists", "records")
MADE_WITH_H5PY = ("annotated",) if find_spec("h5py") is not None else ()


def make_sources(folder: Path) -> None:
    """Write real files of every kind that is read."""
    for name in (*PLAIN, *MADE_WITH_H5PY):
        (folder / name).mkdir(parents=True)
    rows = [f"{i},{i * 7 % 50},{0.5 + i}" for i in range(60)]
    words = [f"v{i}\tv{i * 7 % 50}" for i in range(60)]
    texts = {"a.csv": "source,target,c\n" + "\n".join(rows), "b.tsv": "# of words\n" + "\n".join(words) + "\n"}
    texts["c.txt"] = "\n".join(row.replace(",", "  ") for row in rows)
    for name, text in texts.items():
        (folder / "edges" / name).write_text(text)
    (folder / "edges" / "d.csv.gz").write_bytes(gzip.compress(texts["a.csv"].encode()))
    ids = [f"v{i}" for i in range(60)]
    pairs = pa.table({"a": ids, "b": ids[1:] + ids[:1], "c": np.arange(1.0, 61.0)})
    pq.write_table(pairs, folder / "edges" / "e.parquet", compression="zstd")
    pq.write_table(pa.table({"a": range(60), "b": range(1, 61)}), folder / "edges" / "f.parquet")

    numbers = np.random.default_rng(0).poisson(0.5, (30, 5))
    wide = "id," + ",".join("abcde") + "\n" + "\n".join(f"p{i}," + ",".join(map(str, r)) for i, r in enumerate(numbers))
    long = "user,item,value\n" + "\n".join(f"{i % 9},{i * 5 % 13},{i % 4}" for i in range(80))
    for name, text in {"a.csv": wide, "b.csv": long, "c.tsv": wide.replace(",", "\t")}.items():
        (folder / "tables" / name).write_text(text)
    (folder / "tables" / "d.csv.gz").write_bytes(gzip.compress(long.encode()))
    frame = pa.table({"id": ids[:30], **{name: numbers[:, k] for k, name in enumerate("abcde")}})
    pq.write_table(frame, folder / "tables" / "e.parquet", compression="zstd")

    np.save(folder / "arrays" / "a.npy", numbers.astype(np.float32))
    np.save(folder / "arrays" / "b.npy", numbers)
    np.savez(folder / "arrays" / "c.npz", x=numbers, ids=np.array(ids[:30]))
    np.savez_compressed(folder / "arrays" / "d.npz", x=numbers.astype(float), names=np.array([*"abcde"]))
    for kind in ("csr", "csc", "coo", "dia", "bsr"):
        sparse.save_npz(folder / "arrays" / f"{kind}.npz", sparse.csr_array(numbers).asformat(kind), compressed=False)

    town = [f"{i},{'Rome' if i % 3 else 'Oslo'},{i * 0.37}" for i in range(60)]
    (folder / "lists" / "a.csv").write_text("id,town,age\n" + "\n".join(town))
    (folder / "lists" / "b.csv.gz").write_bytes(gzip.compress("\n".join(town).encode()))
    pq.write_table(pa.table({"id": range(60), "town": ids}), folder / "lists" / "c.parquet", compression="zstd")
    _make_record(folder / "records")
    if MADE_WITH_H5PY:
        _make_annotated(folder / "annotated", numbers, ids)

    (folder / "settings" / "a.toml").write_text(
        'features = "x.csv"\ngraph = "edges.csv"\nposterior = "pairwise"\ngamma = [0.0, 30.0]\nhidden = [300, 20]\n'
        'tau = 0.99\nseed = 7\nsteps = 1000\nlikelihood = "multinomial"\nvalidation = 0.1\ndropout = 0.5\n'
    )
    ratings = "userId,movieId,rating,timestamp\n" + "\n".join(f"{i},{i * 3},{i % 5},{i * 1000}" for i in range(200))
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(folder / "archives" / f"{method}.zip", "w", method) as archive:
            archive.writestr("ml/ratings.csv", ratings)
            archive.writestr("ml/README.txt", "about")

    items = [f"i{k}" for k in range(5)]
    blocks = [sparse.csr_array(numbers[:17]), sparse.csr_array(numbers[17:])]
    write_shards(
        folder / "shards", blocks, n_columns=5, ids=np.array(ids[:30], dtype=object), names=items, most_rows=20
    )

    counts, graph = fragile.data()
    fragile.estimator(4).fit(counts, graph=graph).save(folder / "models")
    run = folder / "run"
    fragile.train(str(run), 5, give_up_at=4)
    (run / "step-000000003").rename(folder / "checkpoints")


def _make_record(folder: Path) -> None:
    history = {"step": [1.0, 2.0], "total": [-3.0, -2.5]}
    texts = {"label": "CVAE_ind", "command": "corrvae reproduce links", "finished": "2026-01-01T00:00:00+00:00"}
    facts = {"settings": {"tau": 0.99}, "data": {"n": 3}, "versions": {"python": "3.11"}, "machine": {"cores": 2}}
    record = Record(
        task="links",
        recipe="quick",
        model="ind",
        seed=0,
        scores={"ncrr": 1.0},
        seconds=1.0,
        peak_megabytes=9.0,
        history=history,
        **texts,
        **facts,
    )
    write_record(folder, record).rename(folder / "seed-0.json")
    shutil.rmtree(folder / "links")


def _make_annotated(folder: Path, numbers: np.ndarray, ids: list[str]) -> None:
    """Write annotated data as the package anndata lays them out."""
    import h5py

    for kind in ("dense", "csr", "csc"):
        with h5py.File(folder / f"{kind}.h5ad", "w") as file:
            for name, index in {"obs": ids[:30], "var": [*"abcde"]}.items():
                frame = file.create_group(name)
                frame.attrs["_index"] = "_index"
                frame.create_dataset("_index", data=index, dtype=h5py.string_dtype())
            if kind == "dense":
                file.create_dataset("X", data=numbers.astype(np.float32), compression="gzip")
                continue
            matrix, group = sparse.csr_array(numbers).asformat(kind), file.create_group("X")
            group.attrs["encoding-type"], group.attrs["shape"] = f"{kind}_matrix", matrix.shape
            for part in ("data", "indices", "indptr"):
                group.create_dataset(part, data=getattr(matrix, part))
