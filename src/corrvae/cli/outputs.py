"""Where a command's answer goes: a file by the ending of its name, else CSV or one JSON document on stdout."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from corrvae.cli.exits import drop_output
from corrvae.cli.together import speaks
from corrvae.drafts import naming

if TYPE_CHECKING:
    from corrvae.answers.tables import AnswerTable

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained run, as corrvae fit writes it.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="File to write, .csv or .parquet; otherwise CSV goes to stdout.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, with names and metric.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the answer and errors.")]
MetricOption = Annotated[
    str, typer.Option(help="The score: expected_distance, log_odds, mean_distance or cosine.", metavar="METRIC")
]
IdColumnOption = Annotated[
    str | None, typer.Option("--id-column", help="Column of the ids in files of features; otherwise the first.")
]
LayoutOption = Annotated[
    str, typer.Option("--layout", help="Of files of features: auto, wide (a row a point) or long (id, item, value).")
]


@final
@dataclass(frozen=True)
class Output:
    """What the user wants to see, and where.

    Attributes
    ----------
    out
        A file, or ``None`` for stdout.
    as_json
        A JSON document on stdout: the answer, or where it is.
    quiet
        No messages.
    """

    out: Path | None = None
    as_json: bool = False
    quiet: bool = False

    def check(self, *endings: str) -> None:
        """Refuse a file that cannot be written before time is spent on it; CSV and Parquet unless told otherwise."""
        from corrvae.answers.writing import TABLE_ENDINGS, check_file

        if self.out is not None:
            check_file(self.out, endings or TABLE_ENDINGS)

    @property
    def progress(self) -> bool | None:
        """Whether to show a bar: ``None`` lets a terminal decide."""
        return False if self.quiet or not speaks() else None

    def say(self, sentence: str) -> None:
        """Tell something that is not the answer."""
        if not self.quiet and speaks():
            typer.echo(sentence, err=True)

    def give(self, table: "AnswerTable") -> None:
        """Put a table where it is wanted, once if several processes have it."""
        from corrvae.answers.writing import CsvWriter, JsonWriter, write_table, writing

        if not speaks():
            return
        if self.out is not None:
            with writing(self.out, table.facts) as writer:
                write_table(table, writer)
            self.wrote(len(table), table.facts)
        elif self.as_json:
            with to_stdout():
                document = JsonWriter(sys.stdout, table.facts)
                write_table(table, document)
                document.close()
        else:
            with to_stdout():
                write_table(table, CsvWriter(sys.stdout))

    def wrote(self, n_rows: int, facts: Any = None) -> None:
        """Tell that a file was written: as the document that was asked for, or in a sentence."""
        if self.as_json:
            self.document({"out": str(self.out), "n_rows": n_rows, **(facts or {})})
        else:
            self.say(f"{n_rows:,} rows are in {self.out}")

    def document(self, facts: Any) -> None:
        """Print a JSON document."""
        if speaks():
            with to_stdout():
                typer.echo(json.dumps(facts, ensure_ascii=False))


@contextmanager
def to_stdout() -> Iterator[None]:
    """Write to stdout; a reader who has seen enough and left, such as head, ends the command quietly."""
    try:
        with naming("standard output"):
            yield
            sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        raise typer.Exit from None


@contextmanager
def warnings_said(say: Callable[[str], None]) -> Iterator[None]:
    """Tell warnings in their own words, without the line of code that they come from."""
    import warnings

    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
    finally:  # what was warned of may be why the rest failed
        for warning in caught:
            if not issubclass(warning.category, DeprecationWarning | PendingDeprecationWarning | ImportWarning):
                say(str(warning.message))
