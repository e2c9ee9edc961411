"""What a text file of edges looks like, from its first lines: comments, delimiter, header, number of fields."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from corrvae.errors import DataFileError
from corrvae.graphs.files.lines import MOST_LINE_BYTES, LongLineError, is_comment
from corrvae.graphs.files.reading import FileLayout, open_data

WHITESPACE = " "
SAMPLE_LINES, SAMPLE_LINE_BYTES, SAMPLE_BYTES = 50, 1 << 20, 1 << 24

_BLANKS = re.compile(r"[ \t\v\f\r]+")
# Python refuses to convert thousands of digits, and 64 bits need 19.
_INTEGER = re.compile(r"-?[0-9]{1,1000}")
# A decimal comma is a number too, when the question is whether a line holds names.
_NUMBER = re.compile(r"[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?")
# What columns of ids are usually called; each may have a number, as in user_1 and user_2, or user and user.1.
_USUAL_NAMES = frozenset(
    {"source", "target", "from", "to", "src", "dst", "fromnodeid", "tonodeid", "id", "node", "vertex", "user", "member"}
    | {"person", "friend", "left", "right", "who", "whom", "parent", "child", "trustor", "trustee"}
    | {f"{end}_id" for end in ("source", "target", "from", "to", "src", "dst")}
)
_USUAL_LETTERS = frozenset("abijuvxy")
_NUMBERED = re.compile(r"(.*?)[_.]?[0-9]+")


@dataclass(frozen=True)
class TextForm:
    """How a text file is laid out.

    Attributes
    ----------
    delimiter
        The character between fields; a blank stands for any run of blanks and tabs.
    preamble
        The number of lines before the first line of data.
    first_line
        The number of the line that fixes how many fields there are: the header, or the first line of data.
    n_fields
        That number of fields.
    names
        The column names, or None without a header.
    first_fields
        The fields of the first line of data, empty when there is none.
    """

    delimiter: str
    preamble: int
    first_line: int
    n_fields: int
    names: list[str] | None
    first_fields: list[str]


def sniff(path: Path, layout: FileLayout, *, comments: bool = True) -> TextForm:
    """Find out how a text file is laid out, as far as the caller has not said.

    Comments may come before the first line; with ``comments`` also among the others.
    """
    sample = _sample(path, comments)
    if not sample:
        raise DataFileError(path, "the file is empty: it holds no line but blank ones and comments")
    try:
        delimiter = layout.delimiter or _delimiter([line for _, line in sample])
        rows = [split_line(line, delimiter) for _, line in sample]
    except csv.Error as error:
        raise DataFileError(path, f"cannot be read as delimited text ({error})") from error
    first_line, n_fields = sample[0][0], len(rows[0])
    if n_fields < 2:
        parted = "blanks" if delimiter == WHITESPACE else repr(delimiter)
        raise DataFileError(path, f"line {first_line} has 1 field where two ids are expected, parted by {parted}")
    header = _has_header(rows, layout)
    if header and layout.columns is None:
        _refuse_unnamed(path, first_line, rows[0])
    data = rows[1:] if header else rows
    return TextForm(
        delimiter,
        preamble=first_line if header else first_line - 1,
        first_line=first_line,
        n_fields=n_fields,
        names=rows[0] if header else None,
        first_fields=data[0] if data and len(data[0]) == n_fields else [],
    )


def split_line(line: str, delimiter: str) -> list[str]:
    """Split one line into fields, without the blanks around them."""
    if delimiter == WHITESPACE:
        return _BLANKS.split(line.strip(" \t\v\f\r\n"))
    return [field.strip() for field in next(csv.reader([line], delimiter=delimiter), [])]


def is_integer(field: str) -> bool:
    """Whether a field is an integer of 64 bits."""
    return _INTEGER.fullmatch(field) is not None and -(2**63) <= int(field) < 2**63


def _sample(path: Path, comments: bool) -> list[tuple[int, str]]:
    """Give the first lines that are neither blank nor comments, with their numbers."""
    sample: list[tuple[int, str]] = []
    with open_data(path) as stream:
        number, total = 0, 0
        while len(sample) < SAMPLE_LINES and total < SAMPLE_BYTES and (read := stream.readline(MOST_LINE_BYTES + 1)):
            number, total = number + 1, total + len(read)
            if len(read) > MOST_LINE_BYTES:
                raise LongLineError(number)
            if b"\0" in read:
                raise DataFileError(path, f"line {number} is not text: it holds a zero byte")
            try:
                line = read.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                byte = f"0x{read[error.start]:02x}"
                raise DataFileError(path, f"line {number} is not UTF-8 text: byte {byte}, {error.reason}") from error
            if "\r" in line:
                raise DataFileError(path, f"line {number} holds carriage returns; lines must end in newlines")
            if line.strip() and not (is_comment(line) and (comments or not sample)):
                sample.append((number, line))
    return sample


def _delimiter(lines: list[str]) -> str:
    """Choose the first delimiter that parts all lines alike; failing that, the first that parts the first line."""
    parting = []
    # semicolons before commas, which part decimals where semicolons part fields
    for candidate in ("\t", ";", ",", "|", WHITESPACE):
        try:
            rows = [split_line(line, candidate) for line in lines]
        except csv.Error:  # a line that this one does not part may be longer than a field can be
            continue
        if len(rows[0]) < 2:
            continue
        parting.append(candidate)
        # tabs that align columns leave fields empty: they are whitespace
        aligning = candidate == "\t" and any("" in row[:2] for row in rows)
        if len({len(row) for row in rows}) == 1 and not aligning:
            return candidate
    return parting[0] if parting else WHITESPACE


def _has_header(rows: list[list[str]], layout: FileLayout) -> bool:
    if layout.header is not None:
        return layout.header
    if any(isinstance(column, str) for column in layout.wanted):
        return True
    first, others = rows[0], rows[1:]
    # the index of a data frame, which has no name and is never empty
    if not first[0] and any(first) and all(row[0] for row in others):
        return True
    for k, name in enumerate(first):
        below = [row[k] for row in others if len(row) > k]
        if below and not _NUMBER.fullmatch(name) and all(map(_NUMBER.fullmatch, below)):
            return True
    return _are_usual_names(first[:2], {field for row in others for field in row})


def _are_usual_names(names: list[str], fields: set[str]) -> bool:
    """Whether names are those that columns of ids usually have, and do not look like the fields below them."""
    if any(name in fields for name in names):
        return False
    lower = [name.lower() for name in names]
    if all(name in _USUAL_LETTERS for name in lower):
        # one line of letters is an edge, and so is the first of many
        return bool(fields) and not any(len(field) == 1 and field.isalpha() for field in fields)
    stems = {name: numbered[1] for name in lower if (numbered := _NUMBERED.fullmatch(name))}
    if not all(stems.get(name, name) in _USUAL_NAMES for name in lower):
        return False
    # user1 and user2 are ids where user3 is one
    below = {numbered[1] for field in fields if (numbered := _NUMBERED.fullmatch(field.lower()))}
    return below.isdisjoint(stems.values())


def _refuse_unnamed(path: Path, line: int, names: list[str]) -> None:
    """Refuse to take a column for ids that has no name, as the index of a data frame has none when it is written."""
    named = [name for name in names if name and not name.startswith("Unnamed:")]
    if names[0] not in named:
        which = f'("{named[0]}", "{named[1]}")' if len(named) > 1 else ""
        raise DataFileError(
            path, f"line {line} has no name for the first column; pass columns={which} to say which columns hold ids"
        )
