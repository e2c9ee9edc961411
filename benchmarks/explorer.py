"""The explorer: speed with 100,000 points, and neighbours that maps keep.

    python benchmarks/explorer.py [--points N] [--write]

Paint: milliseconds from opening the file to the first picture of the map in headless Chromium without a graphics
processor, and between frames while the map is dragged for four seconds; and the processor time of a frame, of all of
the browser's processes, which other programs on the machine lengthen less. Maps: the share of each point's ten nearest
that are among its ten nearest on the map, of generated listeners, a tree, and Citeseer if CORRVAE_DATA has it.
"""

import argparse
import os
import sys
import tempfile
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from corrvae import CorrelatedVAE
from corrvae.datasets import listeners, tree
from corrvae.io import read_features, read_graph
from corrvae.plots.explorer.guide import Guide
from corrvae.plots.explorer.page import render
from corrvae.plots.layout import project, spring_layout
from corrvae.scoring import nearest
from measure import versions, write_results

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.browser import Browser

FRAMES = """
const done = arguments[0], gaps = [], begun = performance.now();
const map = document.getElementById('map'), box = map.getBoundingClientRect();
const send = (kind, x, y) => map.dispatchEvent(new PointerEvent(kind,
    {pointerId: 1, bubbles: true, pointerType: 'mouse', clientX: box.left + x, clientY: box.top + y}));
map.setPointerCapture = () => {};
send('pointerdown', 300, 300);
let last = begun, step = 0;
const drag = (now) => {
  gaps.push(now - last);
  last = now;
  step++;
  send('pointermove', 300 + 150 * Math.sin(step / 9), 300 + 100 * Math.cos(step / 7));
  if (now - begun < 4000) requestAnimationFrame(drag);
  else { send('pointerup', 300, 300); done(gaps); }
};
requestAnimationFrame(drag);
"""


def make_page(n_points: int) -> str:
    """A page of random points in groups, with everything that a page of a model has."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 10, n_points)
    angle = 2 * np.pi * group / 10
    places = 10 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(size=(n_points, 2)) * 2
    names = [f"feature {k}" for k in range(1000)]
    blocks = {
        "places": places.astype(np.float32),
        "spread": rng.random(n_points, np.float32),
        "clusters": group.astype(np.uint16),
        "edges": rng.integers(0, n_points, (4 * n_points, 2)).astype(np.uint32),
        "neighbors": rng.integers(0, n_points, (n_points, 12)).astype(np.int32),
        "links": rng.integers(0, n_points, (n_points, 6)).astype(np.int32),
        "typical": rng.integers(0, 1000, (n_points, 6)).astype(np.uint16),
        "items": rng.integers(0, 1000, (n_points, 6)).astype(np.int32),
    }
    for name, k in (
        ("scores", 12),
        ("probabilities", 12),
        ("link_probabilities", 6),
        ("amounts", 6),
        ("item_scores", 6),
    ):
        blocks[name] = rng.random((n_points, k), np.float32)
    document = {
        "title": f"{n_points:,} points",
        "ids": [f"person {k}" for k in range(n_points)],
        "features": names,
        "signed": False,
        "clusters": [{"name": f"group {k}", "features": [k], "amounts": [2.0]} for k in range(10)],
        "columns": [],
        "metric": "log odds",
        "probabilities": "held out",
        "correlated": False,
        "expectation": "probability",
        "served": False,
    }
    return render(document, blocks)


def measure_paint(n_points: int, folder: Path) -> dict:
    """Milliseconds to the first picture, and between frames while the map is dragged."""
    page = folder / "map.html"
    page.write_text(make_page(n_points), encoding="utf-8")
    with Browser(folder / "profile", size=(1280, 800)) as browser:
        paints = []
        for _ in range(5):
            browser.open(page.as_uri())
            paints.append(browser.wait("document.documentElement.dataset.painted"))
            time.sleep(1.0)  # what follows the first picture is done
            browser.open("about:blank")
        browser.open(page.as_uri())
        browser.wait("document.documentElement.dataset.painted")
        time.sleep(1.0)
        begun = browser.processor_seconds()
        gaps = np.array(browser.run_async(FRAMES)[1:])
        used = browser.processor_seconds() - begun
        version = browser.run("return navigator.userAgent")
    return {
        "points": n_points,
        "megabytes": round(page.stat().st_size / 1e6, 1),
        "first_paint_ms": sorted(map(int, paints)),
        "frames": len(gaps),
        "frame_ms": {str(q): round(float(np.percentile(gaps, q)), 1) for q in (50, 95, 99, 100)},
        "processor_ms_per_frame": round(1000 * used / len(gaps), 1),
        "browser": version,
    }


def measure_maps() -> dict:
    """The share of each point's ten nearest that a map keeps, and the seconds it takes."""
    people, branches = listeners(random_state=0), tree(3000, 300, n_components=20, random_state=0)
    data = {"listeners": (people.plays, people.graph), "tree": (branches.features, branches.graph)}
    citeseer = Path(os.environ.get("CORRVAE_DATA", "")) / "citeseer.zip"
    if citeseer.is_file():
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(citeseer).extractall(folder)
            data["citeseer"] = read_features(Path(folder) / "words.csv"), read_graph(Path(folder) / "links.csv")
    return {name: compare_maps(name, *parts) for name, parts in data.items()}


def compare_maps(name: str, X, graph) -> dict:
    """The share of neighbours kept by each map of a model, and the seconds it takes."""
    model = CorrelatedVAE(random_state=0).fit(X, graph=graph)
    guide, n_points = Guide(model), len(model.ids_)
    exclude = sparse.csr_array(sparse.eye_array(n_points))
    near, _ = nearest(guide.posterior, guide.posterior, guide.metric, 10, exclude=exclude)
    start = project(model.embedding_)[0]
    spring_layout(near[:50] % 50, start[:50])  # compiles
    makers = {"pca": lambda: start, "neighbors": lambda: spring_layout(near, start)}
    if find_spec("umap"):
        makers["umap"] = lambda: project(model.embedding_, "umap")[0]
    found: dict = {"points": n_points}
    for method, make in makers.items():
        begun = time.perf_counter()
        places = make()
        seconds = time.perf_counter() - begun
        close = cKDTree(places).query(places, 11)[1]
        kept = np.mean([len(np.intersect1d(row[row != i][:10], near[i])) / 10 for i, row in enumerate(close)])
        found[method] = {"kept": round(float(kept), 3), "seconds": round(seconds, 2)}
        print(f"{name}: {method} keeps {kept:.3f} in {seconds:.1f} s", flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        paint = measure_paint(options.points, Path(name))
    print(paint, flush=True)
    maps = measure_maps()
    if options.write:
        write_results("explorer", [paint], maps=maps, command="python benchmarks/explorer.py --write", **versions())
