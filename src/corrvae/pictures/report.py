"""The report on a folder of results: one HTML file with tables and figures that needs no network."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from corrvae.drafts import draft_of_file
from corrvae.errors import FolderError
from corrvae.experiments.records import Record, read_records
from corrvae.pictures.bars import Bar
from corrvae.pictures.page import Html, document, element, join
from corrvae.pictures.paper import Published, describe_recipe, describe_task, paper_numbers
from corrvae.pictures.reading import NOT_GIVEN, show_number
from corrvae.pictures.runs import Entrant, Section, arrange
from corrvae.pictures.sections import ranking, say_unclear, section_html
from corrvae.pictures.theme import assign_series

_MODEL_FOLDER = "config.json"
_TITLE = "Correlated variational auto-encoders: results"
_FOOT = "Written by corrvae report. This page is one file and asks for nothing from elsewhere."
_OURS = "cvae"


def write_report(folder: Path, out: Path | None = None, *, published: Published | None = None) -> Path:
    """Write the report on a folder of results, whole or not at all.

    Parameters
    ----------
    folder
        Where ``corrvae reproduce`` left its records.
    out
        The file to write; else ``report.html`` in `folder`.
    published
        The paper's main score of each model, by task; else the ones printed.

    Returns
    -------
    pathlib.Path
        Where it is.

    Raises
    ------
    FolderError
        If the folder is missing, holds no records, or the report cannot be written.
    DataFileError
        If a record is damaged, with its path.

    Examples
    --------
    >>> write_report(Path("nowhere"))
    Traceback (most recent call last):
    corrvae.errors.FolderError: nowhere: there is no such folder
    """
    records = _records(folder)
    page = build_report(records, published=published)
    path = folder / "report.html" if out is None else out
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft_of_file(path) as draft:
            draft.write_text(page, encoding="utf-8", newline="\n")
    return path


def build_report(records: Iterable[Record], *, published: Published | None = None) -> str:
    """Put a report together: the same records always give the same page.

    Examples
    --------
    >>> build_report([]).splitlines()[0]
    '<!DOCTYPE html>'
    """
    sections = arrange(records)
    numbers = paper_numbers(published)
    series = assign_series(run.model for section in sections for run in section.runs if run.history)
    named = {f"s{position}": section for position, section in enumerate(sections, 1)}
    cards, chapters = [], []
    for task, grouped in groupby(named.items(), key=lambda item: item[1].task):
        told, of_task = describe_task(task), dict(grouped)
        paper = {
            name: numbers.get(task, {}) if describe_recipe(section.recipe).compared else {}
            for name, section in of_task.items()
        }
        parts = [element("h2", told.title), element("p", told.question, class_="soft")]
        for name, section in of_task.items():
            parts += [
                element("h3", describe_recipe(section.recipe).title),
                section_html(section, paper[name], series, name=name),
            ]
        chapters.append(element("section", join(parts), id=f"task-{len(chapters) + 1}"))
        first, section = next(iter(of_task.items()))
        cards.append(_card(section, ranking(section, paper[first], series), target=f"task-{len(chapters)}"))
    top = [element("h1", _TITLE), element("p", _summary(sections), class_="soft")]
    glance = element("nav", join(cards), class_="cards", aria_label="Tasks at a glance")
    body = [element("header", join([*top, glance])), element("main", join(chapters)), element("footer", _FOOT)]
    return document(_TITLE, join(body))


def _card(section: Section, ranked: list[tuple[Entrant, Bar]], *, target: str) -> Html:
    """The best correlated model of a task in large, and beside it the paper's and the best of the others."""
    told = describe_task(section.task)
    scored = [(entrant, bar) for entrant, bar in ranked if bar.mean is not None and not entrant.is_ceiling]
    best, ours = next(
        (pair for pair in scored if _OURS in pair[1].label.lower()), scored[0] if scored else (None, None)
    )
    other = next((bar for _, bar in scored if _OURS not in bar.label.lower()), None)
    lines = [element("span", f"{told.title}: {told.measure}", class_="soft")]
    lines.append(element("strong", show_number(None if ours is None else ours.mean)))
    if best is not None and ours is not None:
        lines.append(element("span", f"{ours.label}, {describe_recipe(section.recipe).title.lower()}"))
        lines += [element("span", unclear)] if (unclear := say_unclear(best)) else []
        lines += [] if ours.paper is None else [element("span", f"paper: {show_number(ours.paper)}")]
    if other is not None and other is not ours:
        lines.append(element("span", f"best of the others: {other.label} {show_number(other.mean)}", class_="soft"))
    return element("a", join(lines), class_="card", href=f"#{target}")


def _summary(sections: list[Section]) -> str:
    runs = [run for section in sections for run in section.runs]
    tasks, models = {run.task for run in runs}, {run.model for run in runs}
    last = max((run.finished for run in runs if run.finished != NOT_GIVEN), default=NOT_GIVEN)
    counted = ", ".join(
        _many(n, word) for n, word in ((len(runs), "run"), (len(models), "model"), (len(tasks), "task"))
    )
    return f"{counted}. The last run finished: {last}."


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _records(folder: Path) -> list[Record]:
    if not folder.is_dir():
        raise FolderError(folder, "is not a folder" if folder.exists() else "there is no such folder")
    if (folder / _MODEL_FOLDER).exists():
        raise FolderError(folder, "holds a model; a report is made of a folder of results, as corrvae reproduce writes")
    records = list(read_records(folder))
    if not records:
        raise FolderError(folder, "holds no results; corrvae reproduce TASK --out FOLDER makes them")
    return records


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderError(path, f"cannot be written ({error.strerror or error})") from error
