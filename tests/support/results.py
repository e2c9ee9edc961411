"""Believable records of runs that never were, for tests of tables and reports."""

from pathlib import Path

import numpy as np

from corrvae.experiments.records import Record, Sketches, write_record

MAIN = {"matching": "reciprocal_rank", "clustering": "nmi", "links": "ncrr"}
OTHERS = {"matching": ("hits_1", "hits_10"), "clustering": ("ari",), "links": ("mrr", "hits_10", "auc")}
LEVELS = {
    "matching": {"vae": 0.384, "lsa": 0.66, "ind": 0.806, "corr": 0.842},
    "clustering": {"vae": 0.004, "pca": 0.447, "ind": 0.451, "corr": 0.438, "truth": 0.31},
    "links": {"vae": 0.0049, "sage": 0.0118, "degree": 0.013, "adamic_adar": 0.08, "ind": 0.0163, "corr": 0.0179},
}
LABELS = {
    "vae": "VAE",
    "ind": "CVAE_ind",
    "corr": "CVAE_corr",
    "sage": "GraphSAGE",
    "lsa": "LSA, 20 components",
    "pca": "PCA of x",
    "truth": "true latents",
    "degree": "degree",
    "adamic_adar": "Adamic-Adar",
}
TRAINED = ("vae", "ind", "corr", "sage")


def make_record(task: str, model: str, seed: int = 0, *, recipe: str = "recommended", n_points: int = 60) -> Record:
    """A record with everything a trained model leaves, or only scores for one that is not trained."""
    generator = np.random.default_rng([len(task), len(model), ord(model[0]), seed])
    level = LEVELS[task][model]
    scores = {MAIN[task]: level * (1 + 0.03 * generator.normal())}
    scores |= {name: min(1.0, 1.4 * level * (1 + 0.05 * generator.random())) for name in OTHERS[task]}
    trained = model in TRAINED
    return Record(
        task=task,
        recipe=recipe,
        model=model,
        label=LABELS[model],
        seed=seed,
        scores={name: float(value) for name, value in scores.items()},
        settings={
            "n_components": 100,
            "hidden": [300],
            "tau": 0.99,
            "adam": {"learning_rate": 0.001},
            "gamma": [0, 30],
        },
        data={"name": {"matching": "MovieLens-1M", "links": "Epinions"}.get(task, "tree"), "rows": 10_000},
        versions={"python": "3.11.7", "corrvae": "0.1.0", "torch": "2.13.0"},
        command=f"corrvae reproduce {task} --models {model} --seeds {seed + 1}",
        finished=f"2026-03-0{seed + 1}T10:00:00+00:00",
        seconds=60.0 * (1 + 10 * generator.random()) if trained else 4.2,
        peak_megabytes=700 + 900 * generator.random(),
        history=make_history(model, generator) if trained else None,
        sketches=make_sketches(model, generator, n_points) if trained else None,
    )


def make_history(model: str, generator: np.random.Generator, n_rows: int = 120) -> dict[str, list[float]]:
    """Terms that fall into place as terms do, with noise."""
    steps = np.arange(1, n_rows + 1) * 50.0
    fall = np.exp(-steps / 900)
    terms = {
        "reconstruction": -180 - 400 * fall,
        "singleton": 22 * (1 - fall) + 1,
        "edge": 14 * fall + 5 if model in ("ind", "corr") else 0 * fall,
        "non_edge": 3 * fall + 0.6 if model == "corr" else 0 * fall,
    }
    size = 1 + 0.1 * ord(model[0]) / 100
    terms = {name: size * values * (1 + 0.01 * generator.normal(size=n_rows)) for name, values in terms.items()}
    total = terms["reconstruction"] - terms["singleton"] - terms["edge"] - terms["non_edge"]
    return {name: values.tolist() for name, values in {"step": steps, **terms, "total": total}.items()}


def make_sketches(model: str, generator: np.random.Generator, n_points: int) -> Sketches:
    """A ring of groups, tight for models that see the graph; edges lead to near points."""
    groups = generator.integers(0, 4, n_points)
    angle = groups * np.pi / 2 + generator.normal(scale=0.35, size=n_points)
    spread = 0.15 if model in ("ind", "corr") else 0.7
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + spread * generator.normal(size=(n_points, 2))
    order = np.lexsort((angle, groups))
    edges = [[int(order[i]), int(order[j])] for i in range(n_points) for j in (i + 1, i + 3) if j < n_points]
    random = generator.gamma(6, 2.0, 1500)
    linked = generator.gamma(5, 0.8 if model in ("ind", "corr") else 1.9, 1500)
    weights = np.concatenate([generator.beta(1.3, 6, 900), np.ones(260)])
    counts, bounds = np.histogram(weights, 25, range=(0.0, 1.0))
    return Sketches(
        points=points.round(4).tolist(),
        groups=groups.tolist(),
        edges=edges,
        linked=linked.round(4).tolist(),
        random=random.round(4).tolist(),
        metric="expected squared distance",
        weight_counts=counts.tolist(),
        weight_bounds=bounds.round(6).tolist(),
    )


def make_results(
    folder: Path, *, seeds: int = 3, n_points: int = 60, recipes: tuple[str, ...] = ("recommended",)
) -> Path:
    """Fill a folder with the records of three tasks."""
    for task, levels in LEVELS.items():
        for recipe in recipes:
            for model in levels:
                for seed in range(seeds if recipe == "recommended" else 1):
                    write_record(folder, make_record(task, model, seed, recipe=recipe, n_points=n_points))
    return folder
