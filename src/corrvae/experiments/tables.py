"""Tables of results beside the paper's numbers, for a terminal and as Markdown."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from corrvae.drafts import draft_of_file
from corrvae.errors import DataFileError
from corrvae.experiments.published import CLEAR_RESIDUAL, TASKS, Task
from corrvae.experiments.recipes import RECIPES
from corrvae.experiments.records import Record, read_record

if TYPE_CHECKING:
    from rich.table import Table

# Columns before and after the further scores: model, the paper's score, ours; seeds, time, memory.
_FIRST, _LAST, _PAPER = 3, 3, 1
_RECIPES = ("recommended", "paper", "quick")
_RECIPE_TITLES = {"recommended": "recommended recipe", "paper": "the paper's settings", "quick": "quick"}


@final
@dataclass(frozen=True)
class ResultTable:
    """Results of a task under one recipe, a row for each model.

    Attributes
    ----------
    title
        Task, data and recipe.
    columns
        What stands in each.
    rows
        The cells.
    caption
        How to read it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    def to_markdown(self) -> str:
        """Give it as Markdown.

        Examples
        --------
        >>> print(ResultTable("t", ("model", "NMI"), (("VAE", "0.1"),), "").to_markdown())
        ### t
        <BLANKLINE>
        | model | NMI |
        |---|---:|
        | VAE | 0.1 |
        """
        rule = "|---|" + "---:|" * (len(self.columns) - 1)
        lines = [f"### {self.title}", "", _line(self.columns), rule, *(_line(row) for row in self.rows)]
        return "\n".join([*lines, "", self.caption] if self.caption else lines)

    def to_rich(self, width: int | None = None) -> "Table":
        """Give it for a terminal.

        Parameters
        ----------
        width
            Of the terminal. Columns that it has no room for are left out, the last of the further scores first, then
            memory, time, seeds and the paper's; model and main score always stay. ``None``: room for all.
        """
        from rich.table import Table

        shown = self._fitting(width)
        left_out = "" if len(shown) == len(self.columns) else " More columns are in the Markdown file."
        table = Table(title=self.title, caption=self.caption + left_out)
        for number in shown:
            table.add_column(self.columns[number], justify="left" if number == 0 else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*(row[number] for number in shown))
        return table

    def _fitting(self, width: int | None) -> list[int]:
        """Choose the columns that a width has room for, each with two blanks and a line."""
        shown = list(range(len(self.columns)))
        widths = [max(map(len, cells)) for cells in zip(self.columns, *self.rows, strict=True)]
        last = len(self.columns) - _LAST
        order = [*range(last - 1, _FIRST - 1, -1), *range(len(self.columns) - 1, max(last, _FIRST) - 1, -1), _PAPER]
        while width is not None and order and sum(widths[number] + 3 for number in shown) + 1 > width:
            shown.remove(order.pop(0))
        return shown


def result_table(records: Iterable[Record]) -> ResultTable:
    """Summarise the records of one task and recipe.

    Scores are means over seeds; the main one with its standard deviation (of the sample), where there are two seeds or
    more.

    Parameters
    ----------
    records
        Of one task and recipe, in any order.
    """
    records = sorted(records, key=lambda record: record.seed)
    if not records:
        raise ValueError("there are no records to make a table of")
    kinds = {(record.task, record.recipe) for record in records}
    if len(kinds) > 1:
        raise ValueError(f"a table is of one task and recipe, not of {len(kinds)}")
    task, recipe = TASKS[records[0].task], records[0].recipe
    others = {name: title for name, title in task.others.items() if any(name in record.scores for record in records)}
    models = _in_order({record.model for record in records}, task.name, recipe)
    rows = (_row([record for record in records if record.model == model], task, others) for model in models)
    datasets = ", ".join(dict.fromkeys(str(record.data.get("name", "unknown data")) for record in records))
    return ResultTable(
        title=f"{task.name} on {datasets}: {_RECIPE_TITLES.get(recipe, recipe)}",
        columns=("model", "paper", task.metric_name, *others.values(), "seeds", "minutes", "MB"),
        rows=tuple(rows),
        caption=_caption(task, recipe) + _difference(records, task),
    )


def task_tables(folder: Path, task: str) -> list[ResultTable]:
    """Make the tables of a task from the records in a folder, one for each recipe."""
    tables = []
    for recipe in _RECIPES:
        records = [read_record(path) for path in sorted((folder / task / recipe).glob("*/seed-*.json"))]
        if records:
            tables.append(result_table(records))
    return tables


def write_tables(folder: Path, task: str) -> Path:
    """Write the tables of a task as Markdown, whole or not at all, and say where they are."""
    path = folder / f"{task}.md"
    text = "\n\n".join(table.to_markdown() for table in task_tables(folder, task))
    try:
        with draft_of_file(path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataFileError(path, f"cannot be written ({error.strerror or error})") from error
    return path


def spread(values: Sequence[float]) -> str:
    """Give mean and standard deviation.

    Examples
    --------
    >>> spread([0.2, 0.4]), spread([0.25])
    ('0.3000 ± 0.1414', '0.2500')
    """
    mean = f"{statistics.fmean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.4f}"


def _caption(task: Task, recipe: str) -> str:
    small = ", not to be held against these small data" if recipe == "quick" else ""
    said = f"{task.metric_name}: mean ± standard deviation over seeds; paper: the same, on {task.dataset}{small}; "
    if "residual" in task.others:
        said += f"where the residual is above {CLEAR_RESIDUAL}, no cut stands out and the score means little; "
    return said + "minutes and peak memory of a run: means."


def _difference(records: list[Record], task: Task) -> str:
    """Say how far CVAE_corr is from CVAE_ind on the same seeds, hence the same data, which differ more than models."""
    scores = {(record.model, record.seed): record.scores[task.metric] for record in records}
    seeds = [seed for model, seed in scores if model == "corr" and ("ind", seed) in scores]
    if len(seeds) < 2:
        return ""
    apart = [scores["corr", seed] - scores["ind", seed] for seed in seeds]
    mean, error = statistics.fmean(apart), statistics.stdev(apart) / len(apart) ** 0.5
    return f" CVAE_corr less CVAE_ind, seed by seed: {mean:+z.4f}, with a standard error of {error:.4f}."


def _row(records: list[Record], task: Task, others: Iterable[str]) -> tuple[str, ...]:
    label, model = records[-1].label, records[-1].model
    published = task.published.get(model)
    cells = [label, "" if published is None else str(published), spread([r.scores[task.metric] for r in records])]
    for name in others:
        values = [record.scores[name] for record in records if name in record.scores]
        cells.append(f"{statistics.fmean(values):.4g}" if values else "")
    minutes = statistics.fmean(record.seconds for record in records) / 60
    megabytes = statistics.fmean(record.peak_megabytes for record in records)
    return (*cells, str(len(records)), f"{minutes:.1f}", f"{megabytes:,.0f}")


def _in_order(models: set[str], task: str, recipe: str) -> list[str]:
    """In the order of the recipe; models that it does not have any more come last."""
    known = RECIPES[task, recipe].models if (task, recipe) in RECIPES else ()
    return [model for model in known if model in models] + sorted(models - set(known))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
