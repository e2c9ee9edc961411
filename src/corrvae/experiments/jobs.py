"""A run to be made, with all that it needs: it can be written down and handed to another process."""

import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, final

from corrvae.errors import DataFileError
from corrvae.experiments.recipes import Entry, Recipe
from corrvae.experiments.records import Record, read_record, record_path
from corrvae.experiments.sources import data_files

# Stands for what is not there, which is not the same as None.
_NOTHING = object()
_COMPARED = ("method", "parameters", "metric", "redraw", "graph_features")


@final
@dataclass(frozen=True)
class Job:
    """One model with one seed.

    Attributes
    ----------
    task, recipe
        Such as "links" and "paper".
    entry
        The model with its settings.
    data
        Settings of the data.
    seed
        Of data, splits and training.
    folder
        The folder of results.
    command
        The command that repeats it.
    """

    task: str
    recipe: str
    entry: Entry
    data: dict[str, Any]
    seed: int
    folder: Path
    command: str

    @property
    def title(self) -> str:
        """The job in a few words."""
        return f"{self.entry.label}, seed {self.seed}"

    @property
    def path(self) -> Path:
        """Where its record goes."""
        return record_path(self.folder, self.task, self.recipe, self.entry.model, self.seed)

    @property
    def checkpoint(self) -> Path:
        """Where its training waits if it is interrupted."""
        return self.folder / ".partial" / self.task / self.recipe / self.entry.model / f"seed-{self.seed}"

    def to_json(self) -> str:
        """Write it down on one line.

        Examples
        --------
        >>> job = Job("links", "quick", Entry("degree", "degree", "degree"), {"name": "small"}, 0, Path("r"), "repeat")
        >>> Job.from_json(job.to_json()) == job
        True
        """
        return json.dumps({**asdict(self), "folder": str(self.folder)})

    @classmethod
    def from_json(cls, line: str) -> "Job":
        """Read it again."""
        document = json.loads(line)
        entry = document.pop("entry")
        return cls(**{**document, "entry": Entry(**entry), "folder": Path(document["folder"])})

    def finished(self) -> Record | None:
        """Give its record if it was run before; one of other settings or data is refused.

        Data are compared by their settings and files, and where the files are others, by what is read from them: an
        archive may have been packed anew. That task, recipe, model and seed are those of the path is seen when it is
        read. A record that cannot be read is named, not overwritten.
        """
        if not self.path.exists():
            return None
        record = read_record(self.path)
        asked = json.loads(self.to_json())
        wanted = {name: asked["entry"][name] for name in _COMPARED}
        made = {name: record.settings.get(name) for name in _COMPARED}
        wanted["data"], made["data"] = asked["data"], record.data.get("settings")
        self._compare(made, wanted, "other settings")
        if isinstance(recorded := record.settings.get("all_parameters"), dict):
            self._compare_parameters(recorded)
        if "files" in record.data:
            self._compare_files(record)
        return record

    def _compare_files(self, record: Record) -> None:
        made, wanted = {"files": record.data["files"]}, {"files": data_files(self.data["name"])}
        if made == wanted:
            return
        found = _fingerprint(self.task, json.dumps(self.data), self.seed, json.dumps(wanted))
        if record.data.get("fingerprint") != found:
            self._compare(made, wanted, "other data")

    def _compare_parameters(self, recorded: dict[str, Any]) -> None:
        """Compare all parameters with those of now; what did not exist then had what is now its default."""
        from corrvae.experiments.models import all_parameters

        bare = replace(self.entry, parameters={})
        defaults = json.loads(json.dumps(all_parameters(bare, self.seed)))
        wanted = json.loads(json.dumps(all_parameters(self.entry, self.seed)))
        self._compare({"parameters": {**defaults, **recorded}}, {"parameters": wanted}, "other settings")

    def _compare(self, made: dict[str, Any], wanted: dict[str, Any], what: str) -> None:
        for name in wanted:
            if made[name] != wanted[name]:
                difference = _difference(made[name], wanted[name])
                raise DataFileError(
                    self.path, f"was made with {what} ({name}: {difference}); remove it, or choose another --out"
                )


def jobs_of(recipe: Recipe, n_seeds: int, folder: Path, command: str) -> list[Job]:
    """List the jobs of a recipe: every model with one seed, then with the next.

    Parameters
    ----------
    recipe
        The models.
    n_seeds
        Seeds 0, 1, ....
    folder
        The folder of results.
    command
        The command that repeats them.

    Examples
    --------
    >>> from corrvae.experiments.recipes import find_recipe
    >>> recipe = find_recipe("matching", "quick").choose(["vae", "ind"])
    >>> [job.title for job in jobs_of(recipe, 2, Path("results"), "")]
    ['VAE, seed 0', 'CVAE_ind, seed 0', 'VAE, seed 1', 'CVAE_ind, seed 1']
    """
    return [
        Job(recipe.task, recipe.name, entry, dict(recipe.data), seed, folder, command)
        for seed in range(n_seeds)
        for entry in recipe.entries
    ]


@lru_cache(maxsize=64)  # all models of a seed have the same data
def _fingerprint(task: str, data: str, seed: int, files: str) -> str:
    """Read the data of a task and give the code of what was read; `files` are what it is read from as of now."""
    experiment = import_module(f"corrvae.experiments.{task}")
    return experiment.fingerprint(experiment.load(json.loads(data), seed))


def _difference(made: Any, wanted: Any) -> str:
    if isinstance(made, dict) and isinstance(wanted, dict):
        both = {**made, **wanted}
        name = next(name for name in both if made.get(name, _NOTHING) != wanted.get(name, _NOTHING))
        return f"{name} was {_said(made, name)}, and is {_said(wanted, name)} now"
    return f"was {made!r}, and is {wanted!r} now"


def _said(values: dict[str, Any], name: str) -> str:
    return repr(values[name]) if name in values else "absent"
