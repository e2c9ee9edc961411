"""Tables of results beside the paper's numbers, for a terminal and as Markdown."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from corrvae.experiments.published import CLEAR_RESIDUAL, RECIPE_TITLES, TASKS, Task
from corrvae.experiments.recipes import RECIPES, TWO_CATALOGUES
from corrvae.experiments.records import Record, read_record, write_text

if TYPE_CHECKING:
    from rich.table import Table


@final
@dataclass(frozen=True)
class ResultTable:
    """Results of a task under one recipe: a row for each model, and a caption on how to read it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        lines = [f"### {self.title}", "", _line(self.columns), rule, *(_line(row) for row in self.rows)]
        return "\n".join([*lines, "", self.caption])

    def to_rich(self) -> "Table":
        """Return it for a terminal."""
        from rich.table import Table

        table = Table(title=self.title, caption=self.caption)
        for name in self.columns:
            table.add_column(name, justify="left" if name == "model" else "right")
        for row in self.rows:
            table.add_row(*row)
        return table


def result_table(records: Iterable[Record]) -> ResultTable:
    """Summarise the records of one task and recipe, in any order.

    Scores are means over seeds; the main one with its standard deviation (of the sample), where there are two seeds or
    more.
    """
    records = sorted(records, key=lambda record: record.seed)
    task, recipe = TASKS[records[0].task], records[0].recipe
    others = {name: title for name, title in task.others.items() if any(name in record.scores for record in records)}
    models = in_order({record.model for record in records}, task.name, recipe)
    rows = (_row([record for record in records if record.model == model], task, others) for model in models)
    datasets = ", ".join(dict.fromkeys(str(record.data.get("name", "unknown data")) for record in records))
    return ResultTable(
        title=f"{task.name} on {datasets}: {RECIPE_TITLES.get(recipe, recipe)}",
        columns=("model", "paper", task.metric_name, *others.values(), "seeds", "minutes", "MB"),
        rows=tuple(rows),
        caption=_caption(task, recipe) + _difference(records, task),
    )


def write_tables(folder: Path, task: str) -> Path:
    """Write the tables of a task as Markdown, one for each recipe, and return the path."""
    tables = []
    for recipe in RECIPE_TITLES:
        records = [read_record(path) for path in sorted((folder / task / recipe).glob("*/seed-*.json"))]
        if records:
            tables.append(result_table(records).to_markdown())
    path = folder / f"{task}.md"
    write_text(path, "\n\n".join(tables) + "\n")
    return path


def spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation as text."""
    mean = f"{statistics.fmean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.4f}"


def in_order(models: set[str], task: str, recipe: str) -> list[str]:
    """Return models in the order of the recipe; those that it does not have come last."""
    known = RECIPES[task, recipe].models if (task, recipe) in RECIPES else ()
    return [model for model in known if model in models] + sorted(models - set(known))


def _caption(task: Task, recipe: str) -> str:
    small = ", not comparable with these small data" if recipe == "quick" else ""
    text = f"{task.metric_name}: mean ± standard deviation over seeds; "
    if task.published and not recipe.endswith(TWO_CATALOGUES):
        text += f"paper: the same, on {task.dataset}{small}; "
    if "residual" in task.others:
        text += f"where the residual is above {CLEAR_RESIDUAL}, no cut stands out and the score means little; "
    return text + "minutes and peak memory of a run: means."


def _difference(records: list[Record], task: Task) -> str:
    """Compare CVAE_corr with CVAE_ind on the same seeds, hence the same data, which differ more than models."""
    scores = {(record.model, record.seed): record.scores[task.metric] for record in records}
    seeds = [seed for model, seed in scores if model == "corr" and ("ind", seed) in scores]
    if len(seeds) < 2:
        return ""
    apart = [scores["corr", seed] - scores["ind", seed] for seed in seeds]
    mean, error = statistics.fmean(apart), statistics.stdev(apart) / len(apart) ** 0.5
    return f" CVAE_corr less CVAE_ind, seed by seed: {mean:+z.4f}, with a standard error of {error:.4f}."


def _row(records: list[Record], task: Task, others: Iterable[str]) -> tuple[str, ...]:
    label, model = records[-1].label, records[-1].model
    published = None if records[-1].recipe.endswith(TWO_CATALOGUES) else task.published.get(model)
    cells = [label, "" if published is None else str(published), spread([r.scores[task.metric] for r in records])]
    for name in others:
        values = [record.scores[name] for record in records if name in record.scores]
        cells.append(f"{statistics.fmean(values):.4g}" if values else "")
    minutes = statistics.fmean(record.seconds for record in records) / 60
    megabytes = statistics.fmean(record.peak_megabytes for record in records)
    return (*cells, str(len(records)), f"{minutes:.1f}", f"{megabytes:,.0f}")


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
