"""What `corrvae reproduce` and `corrvae demo` do: choose a recipe, run what has no record, show the table."""

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import final

from corrvae.errors import CorrvaeError
from corrvae.experiments.published import TASKS
from corrvae.experiments.recipes import MIN_RATINGS, RECIPES, TWO_CATALOGUES, Recipe, find_recipe
from corrvae.experiments.records import Record, make_folder, read_record
from corrvae.experiments.running import Job, jobs_of, run_in_process
from corrvae.experiments.tables import result_table, write_tables

_NEED_GEOMETRIC = ("graph_sage", "variational_graph")
_DRAWN = ("tree", "small")


@final
@dataclass
class Tally:
    """Records of all runs that are finished; title and reason of those that failed."""

    records: list[Record] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """Which runs failed, in a sentence; ``None`` if none did."""
        return f"{len(self.failures)} of the runs failed ({'; '.join(self.failures)})" if self.failures else None


def reproduce(
    task: str,
    *,
    models: Sequence[str] | None = None,
    seeds: int | None = None,
    recipe: str = "recommended",
    data: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    protocol: str | None = None,
    out: str | os.PathLike[str] = "results",
    threads: int | None = None,
    quiet: bool = False,
) -> Tally:
    """Run an experiment, and print its results beside the paper's. Runs that have a record are skipped.

    A task has the recipes "recommended", "paper" and "quick" (small data, no download). `models` and `seeds` are all of
    the recipe if they are ``None``, without models that need torch_geometric where it is not installed. `data` is the
    folder of the data instead of ``CORRVAE_DATA``, `out` the folder of the results. Each run has a process of its own,
    with so many `threads`. For matching, `dataset` is "ml-1m" (the default) to "ml-32m", "ciao" or "epinions", and
    `protocol` "random-halves" (the default) or "two-catalogues". Links have the recipe "old-protocol" too.

    The tally returned holds the records of all runs that are finished, and those that failed; ``problem`` describes
    these in a sentence.
    """
    chosen = choose_recipe(task, recipe, models=models, dataset=dataset, protocol=protocol)
    for name, number in (("seeds", seeds), ("threads", threads)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be 1 or more, not {number}")
    if data is not None:
        os.environ["CORRVAE_DATA"] = os.fspath(data)  # the runs are processes of their own, which read it there
    if chosen.data["name"] not in _DRAWN:
        from corrvae.datasets import locate

        locate(chosen.data["name"])  # raises with the command that gets the data
    folder = Path(out)
    make_folder(folder)
    if not quiet and models is None and len(chosen.entries) < len(find_recipe(task, chosen.name).entries):
        print("without torch_geometric, models are left out (pip install 'corrvae[baselines]')", file=sys.stderr)
    command = _command(
        task, models=models, seeds=seeds, recipe=recipe, dataset=dataset, protocol=protocol, threads=threads
    )
    jobs = jobs_of(chosen, seeds or chosen.n_seeds, folder, command)
    tally = _run_all(jobs, threads, quiet)
    if tally.records:
        path = write_tables(folder, task)
        if not quiet:
            from rich.console import Console

            console = Console(width=None if sys.stdout.isatty() else 200)
            console.print(result_table(tally.records).to_rich())
            console.print(f"The tables are in {path}, the records in {path.with_suffix('')}", soft_wrap=True)
    return tally


def _run_all(jobs: Sequence[Job], threads: int | None, quiet: bool) -> Tally:
    """Run what has no record yet, with a line on standard error for each run; one that fails does not stop the others.

    All records are read first: a bad one should not be found after a long run.
    """
    tally, before = Tally(), [job.finished() for job in jobs]
    for number, (job, record) in enumerate(zip(jobs, before, strict=True), 1):
        again = "" if record is None else ", finished before"
        if record is None:
            _print(f"{job.title} ({number} of {len(jobs)})", quiet)
            try:
                run_in_process(job, threads=threads, progress=not quiet and sys.stderr.isatty())
            except Exception as error:
                expected = isinstance(error, CorrvaeError | ValueError | ImportError)
                if not expected:
                    traceback.print_exc()
                tally.failures.append(f"{job.title}: {error if expected else f'{type(error).__name__}: {error}'}")
                _print(f"failed: {tally.failures[-1]}", quiet)
                continue
            record = read_record(job.path)
            write_tables(job.folder, job.task)
        tally.records.append(record)
        task = TASKS[record.task]
        cost = f"{record.seconds:.0f} s, {record.peak_megabytes:,.0f} MB"
        _print(f"{job.title}: {task.metric_name} {record.scores[task.metric]:.4f}, {cost}{again}", quiet)
    return tally


def _print(line: str, quiet: bool) -> None:
    if not quiet:
        print(line, file=sys.stderr)


def demo(out: str | os.PathLike[str] = "corrvae-demo", *, quiet: bool = False) -> Tally:
    """Train a VAE, CVAE_ind and CVAE_corr on a small tree, print how well each finds its groups, write a report.

    Runs that have a record in the folder `out` are skipped.
    """
    from corrvae.experiments.report import write_report

    tally = reproduce("clustering", recipe="quick", out=out, quiet=quiet)
    if tally.records:
        path = write_report(out)
        if not quiet:
            print(f"The report is in {path}")
    return tally


def choose_recipe(
    task: str,
    recipe: str,
    *,
    models: Sequence[str] | None = None,
    dataset: str | None = None,
    protocol: str | None = None,
) -> Recipe:
    """Return a recipe with some of its models and with its data; raise a `ValueError` for what cannot be run.

    Models that need torch_geometric are left out where it is not installed, unless they were named.
    """
    if protocol not in (None, "random-halves", "two-catalogues") or (protocol is not None and task != "matching"):
        raise ValueError(f"protocol is random-halves or two-catalogues, for matching; got {protocol!r} for {task}")
    if (task, recipe) == ("matching", "recommended") and (task, dataset) in RECIPES:
        recipe, dataset = str(dataset), None  # a recipe of its own
    chosen = find_recipe(task, recipe + TWO_CATALOGUES if protocol == "two-catalogues" else recipe)
    if dataset is not None:
        if task != "matching" or "min_ratings" not in chosen.data:
            raise ValueError(f"dataset is for matching with downloaded data; {task} here has its own")
        if dataset not in MIN_RATINGS:
            known = ", ".join((*MIN_RATINGS, "ciao", "epinions"))
            raise ValueError(f"there is no data set {dataset!r} for matching; there are {known}")
        chosen = replace(chosen, data={**chosen.data, "name": dataset, "min_ratings": MIN_RATINGS[dataset]})
    if models is not None:
        if not models:
            raise ValueError(f"models is empty; there are {', '.join(chosen.models)}")
        chosen = chosen.choose(models)
    if find_spec("torch_geometric") is not None:
        return chosen
    missing = [entry.model for entry in chosen.entries if entry.method in _NEED_GEOMETRIC]
    if missing and models is not None:
        needed = "cannot run without torch_geometric: pip install 'corrvae[baselines]'"
        raise ValueError(f"{' and '.join(missing)} {needed}")
    return chosen.choose([model for model in chosen.models if model not in missing])


def _command(task: str, **options: object) -> str:
    """Return the command that repeats a call, without what is the default."""
    shown = {name: value for name, value in options.items() if value is not None and value != "recommended"}
    if options["models"] is not None:
        shown["models"] = ",".join(options["models"])  # pyright: ignore[reportArgumentType,reportCallIssue]
    return f"corrvae reproduce {task}" + "".join(f" --{name} {value}" for name, value in shown.items())
