"""Draw the pictures of README and docs: python benchmarks/gallery.py [FOLDER]. Needs Chromium and its driver."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from corrvae import CorrelatedVAE
from corrvae.datasets import listeners
from corrvae.plots import draw_balance, save_figure, write_page
from corrvae.plots.explorer import write_explorer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.browser import Browser


def draw(out: Path, folder: Path) -> None:
    """Draw all pictures of a model of the generated listeners."""
    people = listeners(500, random_state=0)
    model = CorrelatedVAE(random_state=0).fit(people.plays, graph=people.graph, ids=people.ids)
    model.feature_names_in_ = np.array([style.replace("_", " ") for style in people.styles], dtype=object)
    labels = {"town": people.towns.tolist(), "scene": people.scenes.tolist()}
    write_explorer(model, folder / "map.html", title="Who listens to what", labels=labels)
    write_page(model, folder / "page.html", title="Who listens to what", n_clusters=8)

    there = people.towns == "Esker"  # they and the people most alike in other towns
    matches = model.match(model.ids_[there], model.ids_[~there])
    covariates = pd.DataFrame(np.log1p(people.plays), index=people.ids, columns=model.feature_names_in_)
    save_figure(draw_balance(matches.balance(covariates), n_covariates=16), out / "balance.png")

    with Browser(folder / "profile") as browser:
        views = {
            "explorer": ("map.html#point=nina2", 1180, 860, 1),
            "explorer-group": ("map.html#group=cluster:0&theme=dark", 1180, 700, 1),
            "explorer-phone": ("map.html#point=nina2", 390, 844, 2),
            "page": ("page.html", 900, 1250, 1),
        }
        for name, (address, width, height, ratio) in views.items():
            browser.emulate(width, height, ratio)
            browser.open("about:blank")
            browser.open((folder / "").as_uri() + "/" + address)
            browser.wait("document.querySelector('#panel h2, #facts')")
            time.sleep(1.0)
            browser.screenshot(out / f"{name}.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"), Path(name))
