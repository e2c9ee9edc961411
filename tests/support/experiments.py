"""Recipes so small that a test can run them, and a record made by hand."""

from pathlib import Path

from corrvae.experiments.recipes import Entry, Recipe
from corrvae.experiments.records import Record
from corrvae.experiments.running import Job

TINY = {"n_components": 3, "hidden": (8,), "normalize": "none", "max_steps": 6, "batch_size": 16, "edge_batch_size": 16}
COUNTS = {**TINY, "likelihood": "multinomial"}
BITS = {**TINY, "likelihood": "bernoulli"}
PAIRWISE = {"family": "pairwise", "family__hidden": (6,)}
TREE = {"name": "tree", "n_points": 60, "n_features": 200, "n_components": 10}
WORLD = {"name": "small", "n_users": 60, "n_items": 30}


def tiny_recipe(task: str = "matching", name: str = "quick", *, n_seeds: int = 1) -> Recipe:
    """Return a recipe with a VAE, two CVAEs and a projection, under the names of the real one."""
    likelihood, data = (BITS, TREE) if task == "clustering" else (COUNTS, WORLD)
    linear = "pca" if task == "clustering" else "lsa"
    entries = (
        Entry("vae", "VAE", "vae", likelihood),
        Entry("ind", "CVAE_ind", "cvae", likelihood),
        Entry("corr", "CVAE_corr", "cvae", {**likelihood, **PAIRWISE}),
        Entry(linear, linear.upper(), "principal_components", {"n_components": 2}, "mean_distance"),
    )
    return Recipe(task, name, data, entries, n_seeds)


def tiny_job(folder: Path, model: str = "ind", *, task: str = "matching", seed: int = 0) -> Job:
    """Return a job of the tiny recipe."""
    recipe = tiny_recipe(task)
    (entry,) = recipe.choose([model]).entries
    return Job(task, recipe.name, entry, dict(recipe.data), seed, folder, f"corrvae reproduce {task} --recipe quick")


def made_record(**changes) -> Record:
    """Return a record of a run that never was."""
    parts = {
        "task": "clustering",
        "recipe": "paper",
        "model": "ind",
        "label": "CVAE_ind",
        "seed": 0,
        "scores": {"nmi": 0.25, "ari": 0.3},
        "settings": {"method": "cvae"},
        "data": {"name": "synthetic tree, 60 points", "settings": TREE},
        "versions": {"python": "3.11.0"},
        "command": "corrvae reproduce clustering",
        "finished": "2026-01-01T00:00:00+00:00",
        "seconds": 90.0,
        "peak_megabytes": 512.0,
        "history": {"step": [1.0, 2.0], "total": [-3.0, -2.5]},
    }
    return Record(**{**parts, **changes})
