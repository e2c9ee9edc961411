"""Columns of numbers from the text files of data sets, by the million rows."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from corrvae.datasets.archives import Member
from corrvae.errors import DataFileError
from corrvae.graphs.files.lines import LongLineError, TidyLines, single_blanks

_READ_BYTES = 1 << 23


@final
@dataclass(frozen=True)
class TextLayout:
    """How a text file is laid out.

    Attributes
    ----------
    names
        Its columns.
    header
        Whether the first line names them.
    delimiter
        What parts them, after `tidy`.
    tidy
        What is done to whole lines beforehand.
    """

    names: tuple[str, ...]
    header: bool = False
    delimiter: str = ","
    tidy: Callable[[bytes], bytes] | None = None


def double_colons(lines: bytes) -> bytes:
    r"""Turn the double colons between fields into commas.

    Examples
    --------
    >>> double_colons(b"1::1193::5::978300760\n")
    b'1,1193,5,978300760\n'
    """
    return lines.replace(b"::", b",")


RATINGS_DAT = TextLayout(("userId", "movieId", "rating", "timestamp"), tidy=double_colons)
RATINGS_CSV = TextLayout(("userId", "movieId", "rating", "timestamp"), header=True)
THREE_NUMBERS = TextLayout(("first", "second", "value"), delimiter=" ", tidy=single_blanks)


def read_integers(
    path: Path, member: Member, layout: TextLayout, wanted: tuple[str, ...]
) -> list[Int[np.ndarray, " rows"]]:
    """Read some columns as integers.

    Parameters
    ----------
    path
        What the file was found in, for errors.
    member
        The open file.
    layout
        How it is laid out.
    wanted
        Names of the columns.
    """
    import pyarrow as pa
    from pyarrow import csv

    stream = member.stream
    if layout.tidy is not None:
        stream = io.BufferedReader(TidyLines(stream, layout.tidy))
    names = None if layout.header else list(layout.names)
    try:
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(column_names=names, block_size=_READ_BYTES),
            parse_options=csv.ParseOptions(delimiter=layout.delimiter),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.int64()), include_columns=list(wanted), null_values=[]
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError, LongLineError) as error:
        asked = layout.delimiter.join(layout.names)
        raise DataFileError(path, f"{member.name} is not as published, lines of {asked!r} ({error})") from error
    if not table.num_rows:
        raise DataFileError(path, f"{member.name} holds no rows")
    return [table.column(name).to_numpy() for name in wanted]
