"""Edges from text: a fast pass for files that are as they should be, a careful one that finds the line when not."""

import csv
import io
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from corrvae.errors import DataFileError
from corrvae.graphs.files.coding import code_strings
from corrvae.graphs.files.lines import (
    MOST_LINE_BYTES,
    LongLineError,
    TidyLines,
    is_comment,
    single_blanks,
    without_comments,
)
from corrvae.graphs.files.reading import PARQUET_MAGIC, EdgeTable, FileLayout, column_positions, open_data
from corrvae.graphs.files.sniff import WHITESPACE, TextForm, is_integer, sniff, split_line
from corrvae.graphs.pairs import CodedPairs, code_pairs

if TYPE_CHECKING:
    import pyarrow

BLOCK_BYTES = 1 << 23


def read_text(path: Path, layout: FileLayout) -> EdgeTable:
    """Read the edges of a delimited or whitespace-separated text file."""
    form = sniff(path, layout)
    positions = column_positions(path, layout.wanted, form.names, form.n_fields)

    def place(position: int) -> str:
        line, _ = next(islice(data_rows(path, form), position, None))
        return f"line {line}"

    coded, conductances = _read_fast(path, form, positions, layout) or _read_carefully(path, form, positions, layout)
    return EdgeTable(coded, conductances, place, headless=form.names is None)


def possible_names(path: Path, layout: FileLayout) -> list[str]:
    """Give the two ids of a text file's first line, when they were not taken for names but could be; else nothing."""
    with open_data(path) as stream:
        if stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC:
            return []
    form = sniff(path, layout)
    if form.names is not None or not form.first_fields:
        return []
    positions = column_positions(path, layout.wanted, form.names, form.n_fields)
    first = [form.first_fields[k] for k in positions[:2]]
    return [] if any(map(is_integer, first)) else first


def _read_fast(
    path: Path, form: TextForm, positions: list[int], layout: FileLayout
) -> tuple[CodedPairs, np.ndarray | None] | None:
    """Read with Arrow; None when the file is not as it should be."""
    import pyarrow as pa

    if layout.id_kind is not None:
        kinds = [pa.int64() if layout.id_kind == "integer" else pa.string()]
    else:
        begins_with_integers = all(is_integer(form.first_fields[k]) for k in positions[:2] if form.first_fields)
        kinds = [pa.int64(), pa.string()] if begins_with_integers else [pa.string()]
    for kind in kinds:
        try:
            columns = _arrow_columns(path, form, positions, kind)
        except pa.ArrowException:
            continue
        values = columns[2].to_numpy() if len(columns) > 2 else None
        if kind == pa.int64():
            return code_pairs(np.column_stack([column.to_numpy() for column in columns[:2]])), values
        coded = code_strings(columns[:2])
        # the careful pass says at which line
        return None if "" in coded.distinct[:1] else (coded, values)
    return None


def _arrow_columns(
    path: Path, form: TextForm, positions: list[int], kind: "pyarrow.DataType"
) -> "list[pyarrow.ChunkedArray]":
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    names = [str(k) for k in range(form.n_fields)]
    wanted = [names[k] for k in positions]
    types = dict(zip(wanted, [kind, kind, pa.float64()], strict=False))
    blanks = form.delimiter == WHITESPACE

    def tidy(lines: bytes) -> bytes:
        return single_blanks(without_comments(lines)) if blanks else without_comments(lines)

    with after_preamble(path, form) as stream:
        table = arrow_csv.read_csv(
            io.BufferedReader(TidyLines(stream, tidy)),
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(delimiter=form.delimiter, quote_char=False if blanks else '"'),
            convert_options=arrow_csv.ConvertOptions(column_types=types, include_columns=wanted, null_values=[]),
        )
    columns = [table.column(name) for name in wanted]
    if kind == pa.string():
        columns[:2] = [pc.call_function("utf8_trim_whitespace", [column]) for column in columns[:2]]
    return columns


def _read_carefully(
    path: Path, form: TextForm, positions: list[int], layout: FileLayout
) -> tuple[CodedPairs, np.ndarray | None]:
    """Read line by line, and raise at the first line that is not as it should be."""
    # as numbers: as strings, a file would take thirty times its size before its last line is found to be wrong
    number_of: dict[str, int] = {}
    codes, conductances = array("q"), array("d")
    for line, fields in data_rows(path, form):
        if len(fields) != form.n_fields:
            raise DataFileError(
                path,
                f"line {line} has {_fields(len(fields))} where line {form.first_line} has {_fields(form.n_fields)}",
            )
        pair = (fields[positions[0]], fields[positions[1]])
        if "" in pair:
            raise DataFileError(path, f"line {line} has an empty id")
        if layout.id_kind == "integer" and not all(map(is_integer, pair)):
            value = next(value for value in pair if not is_integer(value))
            raise DataFileError(path, f"line {line} has id {value!r}, which is not an integer of 64 bits")
        for value in pair:
            codes.append(number_of.setdefault(value, len(number_of)))
        if len(positions) > 2:
            conductances.append(_number(path, line, fields[positions[2]]))
    coded = _coded([*number_of], np.array(codes, dtype=np.int64).reshape(-1, 2), layout)
    return coded, np.array(conductances) if len(positions) > 2 else None


def _coded(strings: list[str], codes: np.ndarray, layout: FileLayout) -> CodedPairs:
    """Number ids as integers if all of them are, and that is not ruled out; else as strings, in their order."""
    if not strings:
        return code_pairs([])
    if layout.id_kind != "string" and all(map(is_integer, strings)):
        return code_pairs(np.array([int(string) for string in strings], dtype=np.int64)[codes])
    order = sorted(range(len(strings)), key=strings.__getitem__)
    number, distinct = np.empty(len(order), np.int64), np.empty(len(order), object)
    number[order] = np.arange(len(order))
    distinct[:] = [strings[k] for k in order]
    return CodedPairs(number[codes], distinct)


def data_rows(path: Path, form: TextForm, *, comments: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Give the line number and fields of every line of data, among which there may be comments or not."""
    number = form.preamble

    def lines(text: io.TextIOWrapper) -> Iterator[str]:
        nonlocal number
        while line := text.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                raise LongLineError(number)
            if not (comments and is_comment(line)):
                yield line

    with after_preamble(path, form) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")  # pyright: ignore[reportArgumentType]
        try:
            if form.delimiter == WHITESPACE:
                for line in lines(text):
                    if line.strip():
                        yield number, split_line(line, WHITESPACE)
                return
            for fields in csv.reader(lines(text), delimiter=form.delimiter):
                if any(field.strip() for field in fields) or len(fields) > 1:
                    yield number, [field.strip() for field in fields]
        except UnicodeDecodeError as error:
            raise DataFileError(path, f"is not UTF-8 text: {error.reason} 0x{error.object[error.start]:02x}") from error
        except csv.Error as error:
            raise DataFileError(path, f"cannot be read as delimited text ({error})") from error


@contextmanager
def after_preamble(path: Path, form: TextForm) -> Iterator[io.BufferedIOBase]:
    """Open a file where its data begin."""
    with open_data(path) as stream:
        if stream.read(3) != b"\xef\xbb\xbf":
            stream.seek(0)
        for _ in range(form.preamble):
            stream.readline()
        yield stream


def _number(path: Path, line: int, field: str) -> float:
    try:
        return float(field)
    except ValueError:
        hint = "; decimals are parted by a point" if "," in field else ""
        raise DataFileError(path, f"line {line} has conductance {field!r}, which is not a number{hint}") from None


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"
