"""What `corrvae reproduce` does: choose a recipe, run what is missing, show the table."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import final

from corrvae.datasets.cache import locate
from corrvae.errors import CorrvaeError, DataFileError, MissingDataFileError
from corrvae.experiments.jobs import jobs_of
from corrvae.experiments.progress import TextStream, choose_display
from corrvae.experiments.recipes import MIN_RATINGS, Recipe, find_recipe
from corrvae.experiments.records import read_record
from corrvae.experiments.running import Start, Tally, in_own_process, run_jobs
from corrvae.experiments.tables import result_table, write_tables

_NEED_GEOMETRIC = ("graph_sage", "variational_graph")


@final
@dataclass(frozen=True)
class Request:
    """What a user asked for.

    Attributes
    ----------
    task
        "clustering", "links" or "matching".
    models
        Names of models; ``None``: all of the recipe.
    seeds
        How many; ``None``: as many as the recipe says.
    recipe
        "recommended" or "paper"; ``None``: the first, or "quick" with `quick`.
    quick
        Small data, nothing to download.
    data
        Folder of the data, instead of ``CORRVAE_DATA``.
    dataset
        For matching: which MovieLens; ``None``: ml-1m.
    out
        Folder of the results.
    threads
        Threads of each run.
    """

    task: str
    models: tuple[str, ...] | None = None
    seeds: int | None = None
    recipe: str | None = None
    quick: bool = False
    data: Path | None = None
    dataset: str | None = None
    out: Path = Path("results")
    threads: int | None = None

    @property
    def command(self) -> str:
        """The command that asks for this, as one would type it.

        Examples
        --------
        >>> Request("links", models=("vae", "ind"), seeds=3, recipe="paper").command
        'corrvae reproduce links --models vae,ind --seeds 3 --recipe paper'
        """
        options = {
            "models": None if self.models is None else ",".join(self.models),
            "seeds": self.seeds,
            "recipe": self.recipe,
            "dataset": self.dataset,
            "threads": self.threads,
        }
        said = "".join(f" --{name} {value}" for name, value in options.items() if value is not None)
        return f"corrvae reproduce {self.task}{' --quick' if self.quick else ''}{said}"


def plan(request: Request, say: Callable[[str], None]) -> Recipe:
    """Find the recipe that was asked for, with the models and the data; refuse what cannot be run.

    Parameters
    ----------
    request
        What was asked for.
    say
        Told what is left out.

    Examples
    --------
    >>> plan(Request("clustering", models=("ind",), quick=True), print).models
    ('ind',)
    """
    if request.quick and request.recipe not in (None, "quick"):
        raise ValueError(f"--quick is a recipe of its own: leave out --recipe {request.recipe}")
    recipe = find_recipe(request.task, "quick" if request.quick else request.recipe or "recommended")
    if request.seeds is not None and request.seeds < 1:
        raise ValueError(f"--seeds must be 1 or more, not {request.seeds}")
    if request.threads is not None and request.threads < 1:
        raise ValueError(f"--threads must be 1 or more, not {request.threads}")
    if request.dataset is not None:
        recipe = _with_dataset(recipe, request.dataset)
    if request.models is not None:
        if not request.models:
            raise ValueError(f"--models names no model; there are {', '.join(recipe.models)}")
        recipe = recipe.choose(request.models)
    return _with_what_is_installed(recipe, request.models is not None, say)


def reproduce(request: Request, *, start: Start | None = None, errors: TextStream | None = None) -> Tally:
    """Run what is asked for and not finished yet, write the tables, and print the one of this recipe.

    Parameters
    ----------
    request
        What was asked for.
    start
        How a job is run; ``None``: in a process of its own.
    errors
        Where progress goes; ``None``: standard error.
    """
    from rich.console import Console

    stream: TextStream = sys.stderr if errors is None else errors
    if request.data is not None:
        # the runs are processes of their own, which find the folder here
        os.environ["CORRVAE_DATA"] = str(request.data)
    recipe = plan(request, lambda sentence: print(sentence, file=stream))
    _check_data(recipe, request.data)
    _check_folder(request.out)
    _check_records(request.out, recipe)
    n_seeds = recipe.n_seeds if request.seeds is None else request.seeds
    jobs = jobs_of(recipe, n_seeds, request.out, request.command)
    with choose_display(stream) as display:
        tally = run_jobs(
            jobs,
            display,
            in_own_process(request.threads) if start is None else start,
            lambda: write_tables(request.out, recipe.task),
        )
    if tally.records:
        path = write_tables(request.out, recipe.task)
        console = Console(width=None if sys.stdout.isatty() else 200)
        console.print(result_table(tally.records).to_rich(console.width))
        console.print(f"The tables are in {path}, the records in {path.with_suffix('')}", soft_wrap=True)
    return tally


def failures_of(tally: Tally) -> str | None:
    """Say in a sentence which runs failed.

    Examples
    --------
    >>> failures_of(Tally()) is None
    True
    """
    if not tally.failures:
        return None
    names = "; ".join(f"{job.title}: {problem}" for job, problem in tally.failures)
    count = len(tally.failures)
    return f"{'1 run' if count == 1 else f'{count} runs'} failed ({names})"


def _with_dataset(recipe: Recipe, dataset: str) -> Recipe:
    if recipe.data["name"] not in MIN_RATINGS:
        raise ValueError(f"--dataset is for matching with downloaded data; {recipe.task} here uses its own")
    if dataset not in MIN_RATINGS:
        raise ValueError(f"there is no data set {dataset!r} for matching; there are {', '.join(MIN_RATINGS)}")
    return replace(recipe, data={"name": dataset, "min_ratings": MIN_RATINGS[dataset]})


def _with_what_is_installed(recipe: Recipe, named: bool, say: Callable[[str], None]) -> Recipe:
    """Leave out, or refuse if they were named, the models that need torch_geometric where it is not installed."""
    missing = [entry.model for entry in recipe.entries if entry.method in _NEED_GEOMETRIC]
    if not missing or find_spec("torch_geometric") is not None:
        return recipe
    names = " and ".join(missing)
    needs = f"{names} need{'s' if len(missing) == 1 else ''} torch_geometric: pip install 'corrvae[baselines]'"
    if named:
        raise ValueError(needs)
    say(f"left out: {needs}")
    return recipe.choose([model for model in recipe.models if model not in missing])


def _check_data(recipe: Recipe, folder: Path | None) -> None:
    """Refuse to begin without the data, naming the command that gets it into the folder that was looked in."""
    name = recipe.data["name"]
    if name in ("tree", "small"):
        return
    try:
        locate(name)
    except MissingDataFileError as error:
        if folder is None:
            raise
        get = f"CORRVAE_DATA={shlex.quote(str(folder))} corrvae data get {name}"
        raise MissingDataFileError(error.path, f"{name} is not there yet; get it with: {get}") from error


def _check_records(folder: Path, recipe: Recipe) -> None:
    """Read all records that the tables will be made of: what is wrong with one should not come after a long run."""
    wanted = json.loads(json.dumps(dict(recipe.data)))
    for path in sorted((folder / recipe.task).glob("*/*/seed-*.json")):
        record = read_record(path)
        made = record.data.get("settings", wanted)
        if record.recipe == recipe.name and made != wanted:
            raise DataFileError(
                path, f"is of other data ({made}) than this run ({wanted}); remove it, or choose another --out"
            )


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CorrvaeError(f"{folder}: cannot be written ({error.strerror or error})") from error
