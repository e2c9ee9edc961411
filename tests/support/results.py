"""Believable records of runs that never were, for tests of reports."""

from pathlib import Path

import numpy as np

from corrvae.experiments.records import Record, write_record

MAIN = {"matching": "reciprocal_rank", "clustering": "nmi", "links": "ncrr"}
OTHERS = {"matching": ("hits_1", "hits_10"), "clustering": ("ari", "residual"), "links": ("mrr", "hits_10", "auc")}
LEVELS = {
    "matching": {"vae": 0.384, "lsa": 0.66, "ind": 0.806, "corr": 0.842},
    "clustering": {"vae": 0.004, "pca": 0.447, "ind": 0.051, "truth": 0.61},
    "links": {"sage": 0.0118, "adamic": 0.08, "ind": 0.0163, "corr": 0.0179},
}
LABELS = {
    "vae": "VAE",
    "ind": "CVAE_ind",
    "corr": "CVAE_corr",
    "sage": "GraphSAGE",
    "lsa": "LSA, 20 components",
    "pca": "PCA of x",
    "truth": "true latents",
    "adamic": "Adamic-Adar",
}


def make_record(task: str, model: str, seed: int = 0, *, recipe: str = "recommended") -> Record:
    """Return a record with all that a trained model leaves, or only scores for one that is not trained."""
    generator = np.random.default_rng([len(task), len(model), ord(model[0]), seed])
    level = LEVELS[task][model]
    scores = {MAIN[task]: level * (1 + 0.03 * generator.normal())}
    scores |= {name: 1.4 * level * (1 + 0.05 * generator.random()) for name in OTHERS[task]}
    trained = model in ("vae", "ind", "corr", "sage")
    steps = np.arange(1.0, 21.0)
    history = {"step": steps.tolist(), "total": (-180 - 400 * np.exp(-steps)).tolist(), "edge": [0.0] * 20}
    return Record(
        task=task,
        recipe=recipe,
        model=model,
        label=LABELS[model],
        seed=seed,
        scores={name: float(value) for name, value in scores.items()},
        settings={"method": "latents" if model == "truth" else "cvae", "parameters": {"tau": 0.99, "hidden": [300]}},
        data={"name": {"matching": "MovieLens-1M", "links": "Epinions"}.get(task, "tree <10>"), "rows": 10_000},
        versions={"python": "3.11.7", "corrvae": "0.1.0"},
        command=f"corrvae reproduce {task} --models {model} --seeds {seed + 1}",
        finished=f"2026-03-0{seed + 1}T10:00:00+00:00",
        seconds=60.0 * (1 + 10 * generator.random()) if trained else 4.2,
        peak_megabytes=700 + 900 * generator.random(),
        history=history if trained else None,
    )


def make_results(folder: Path, *, seeds: int = 2) -> Path:
    """Fill a folder with the records of three tasks."""
    for task, levels in LEVELS.items():
        for model in levels:
            for seed in range(seeds):
                write_record(folder, make_record(task, model, seed))
    return folder
