"""Tables as Parquet files that cannot decode to far more than they hold.

Compressed, a few hundred bytes can stand for gigabytes: a long string that every row repeats, a number in a billion
rows. What a file's footer and its pages claim is compared with the file's size before anything is decoded, and strings
are decoded once, however often they occur.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from corrvae.parquet.footer import Footer, footer_length, read_footer
from corrvae.parquet.pages import most_of_pages

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

# What a byte of a file may stand for, beyond what any file may.
MOST_TIMES, ALWAYS_BYTES = 512, 1 << 24
_STRINGS = "BYTE_ARRAY"


def save_table(place: Path, table: "pyarrow.Table") -> None:
    """Write a table, compressed unless that made a file which `load_table` would not believe.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_table(Path(folder, "t.parquet"), pa.table({"id": ["ann", "bob"]}))
    ...     load_table(Path(folder, "t.parquet").read_bytes())["id"].to_pylist()
    ['ann', 'bob']
    """
    import pyarrow.parquet as pq

    pq.write_table(table, place, compression="zstd")
    size = place.stat().st_size
    if max(table.nbytes, most_claimed(place, size)) > _most(size):
        pq.write_table(table, place, compression="none", use_dictionary=False)


def load_table(data: bytes) -> "pyarrow.Table":
    """Read a table from the bytes of its file; a `ValueError` says that it claims more than it can hold."""
    import pyarrow as pa

    file = open_checked(pa.BufferReader(data), len(data))
    return decoded(file.read(), len(data))


def open_checked(source: Any, size: int) -> "pyarrow.parquet.ParquetFile":
    """Open a file of this size, once it claims no more than such a file should hold.

    Strings come out of it as dictionaries; see `decoded`.
    """
    import pyarrow.parquet as pq

    claimed = most_claimed(source, size)
    if claimed > _most(size):
        raise ValueError(
            f"it claims {claimed:,} bytes of values in {size:,} bytes; if it is right, write it without compression"
        )
    about = pq.read_metadata(source)
    columns = (about.schema.column(number) for number in range(about.num_columns))
    strings = [column.path for column in columns if column.physical_type == _STRINGS]
    return pq.ParquetFile(source, metadata=about, read_dictionary=strings)


def most_claimed(source: Any, size: int) -> int:
    """Give the bytes that a file claims to hold once decoded; it is a path or something to read from."""
    if isinstance(source, Path):
        with source.open("rb") as stream:
            return most_claimed(stream, size)
    footer = footer_of(source, size)
    # its pages are many: they are read where the footer claims no more than it may
    claimed = footer.most
    if claimed <= _most(size):
        claimed = max(claimed, most_of_pages(source, size, footer.chunks))
    source.seek(0)
    return claimed


def footer_of(stream: Any, size: int) -> Footer:
    """Read the footer of an open file."""
    stream.seek(max(0, size - 8))
    length = footer_length(bytes(stream.read(8)), size)
    stream.seek(size - 8 - length)
    return read_footer(bytes(stream.read(length)))


def decoded(table: "pyarrow.Table", size: int) -> "pyarrow.Table":
    """Give the dictionaries of a table as plain columns, if those are of a size that such a file should have."""
    import pyarrow as pa

    left, columns = _most(size), []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type) and "dictionary<" in str(column.type):
            raise ValueError(f"its column {name!r} holds {column.type}; strings within other values are not read")
        if pa.types.is_dictionary(column.type):
            left -= sum(map(string_bytes, column.chunks))
            if left < 0:
                raise ValueError(f"its strings take {_most(size) - left:,} bytes or more, too many for its size")
            column = column.cast(column.type.value_type)
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def string_bytes(column: "pyarrow.Array") -> int:
    """Count the bytes of the strings of a dictionary, each as often as it occurs.

    Examples
    --------
    >>> import pyarrow as pa
    >>> string_bytes(pa.array(["ann", "bob", "ann"]).dictionary_encode())
    9
    """
    import pyarrow.compute as pc

    lengths = pc.call_function("binary_length", [column.dictionary]).cast("int64")
    return pc.call_function("sum", [lengths.take(column.indices)]).as_py() or 0


def _most(size: int) -> int:
    return MOST_TIMES * size + ALWAYS_BYTES
