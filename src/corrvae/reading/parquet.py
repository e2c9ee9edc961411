"""Tables in Parquet."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from corrvae.errors import DataFileError
from corrvae.graphs.files.reading import open_data
from corrvae.parquet import open_checked
from corrvae.reading.keys import texts_of
from corrvae.reading.tables import Kind, TableFile
from corrvae.unpacking import Unpacked

if TYPE_CHECKING:
    import pyarrow

# Cells of a batch, so that wide tables come in few rows.
_BATCH_CELLS, _MOST_ROWS = 1 << 22, 1 << 18
SAMPLE_ROWS = 1000


@final
class ParquetTable(TableFile):
    """A Parquet file, which may be wrapped in gzip.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        with open_data(path) as stream:
            # Parquet is read from its end, which a compressed stream cannot do
            source = BytesIO(stream.read()) if isinstance(stream, Unpacked) else path
            size = source.getbuffer().nbytes if isinstance(source, BytesIO) else path.stat().st_size
        try:
            self._file = open_checked(source, size)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataFileError(path, f"cannot be read as Parquet ({error})") from error
        self._schema = self._file.schema_arrow
        self.names = list(self._schema.names)
        self.n_columns = len(self.names)

    def usual_id(self) -> int:
        """Give the index of a pandas frame if there is one, else the first column."""
        named = [name for name in _index_columns(self._schema) if isinstance(name, str) and name in (self.names or ())]
        return (self.names or []).index(named[0]) if named else 0

    def sample(self, positions: Sequence[int]) -> list[list[str]]:
        """See `TableFile.sample`."""
        import pyarrow as pa

        names = [self._schema.names[k] for k in positions]
        try:
            batch = next(self._file.iter_batches(batch_size=SAMPLE_ROWS, columns=names), None)
            if batch is None:
                return []
            columns = [texts_of(batch.column(name)) for name in names]
        except (pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
            raise DataFileError(self.path, f"cannot be read as Parquet ({error})") from error
        return [["" if value is None else str(value) for value in row] for row in zip(*columns, strict=True)]

    def batches(self, positions: Sequence[int], kinds: Sequence[Kind]) -> "Iterator[list[pyarrow.Array]]":
        """See `TableFile.batches`."""
        import pyarrow as pa

        names = [self._schema.names[k] for k in positions]
        for k, kind in zip(positions, kinds, strict=True):
            self._check_kind(k, kind)
        size = max(1, min(_MOST_ROWS, _BATCH_CELLS // max(1, len(names))))
        begin = 0
        try:
            for batch in self._file.iter_batches(batch_size=size, columns=names):
                columns = [batch.column(name) for name in names]
                yield [self._convert(*part, begin) for part in zip(columns, positions, kinds, strict=True)]
                begin += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataFileError(self.path, f"cannot be read as Parquet ({error})") from error

    def place(self, row: int) -> str:
        """See `TableFile.place`."""
        return f"row {row} (from 0)"

    def _check_kind(self, position: int, kind: Kind) -> None:
        import pyarrow as pa

        found = self._schema.types[position]
        if pa.types.is_dictionary(found):
            found = found.value_type
        if kind == "key":
            strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
            fits = pa.types.is_integer(found) or any(is_kind(found) for is_kind in strings)
            wanted = "ids and items are integers or strings"
        else:
            numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
            fits, wanted = any(is_kind(found) for is_kind in numbers), "features are numbers"
        if not fits and not pa.types.is_null(found):
            raise DataFileError(self.path, f"{self.name_of(position)} holds {found}; {wanted}")

    def _convert(self, column: "pyarrow.Array", position: int, kind: Kind, begin: int) -> "pyarrow.Array":
        import pyarrow as pa

        if kind == "key" and column.null_count:  # before its strings are written out, each as often as it occurs
            row = begin + column.is_null().to_pylist().index(True)
            raise DataFileError(self.path, f"{self.place(row)} has nothing in {self.name_of(position)}")
        if kind == "key" and pa.types.is_dictionary(column.type):
            return _only_used(column)
        if kind == "number":
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if pa.types.is_boolean(column.type):
                column = column.cast(pa.int8())
            return column.cast(pa.float64(), safe=False)
        return column.cast(pa.string()).dictionary_encode()


def _index_columns(schema: "pyarrow.Schema") -> list[Any]:
    """Give what pandas has written of a frame's index, which may be anything; it only tells which column is usual."""
    try:
        listed = schema.pandas_metadata["index_columns"]  # pyright: ignore[reportOptionalSubscript]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return listed if isinstance(listed, list) else []


def _only_used(column: "pyarrow.Array") -> "pyarrow.Array":
    """Give strings under numbers that occur, in the order of their first occurrence, each once however long it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    used = column.indices.unique()
    strings = column.dictionary.take(used).cast(pa.string())
    strings.validate(full=True)  # that they are UTF-8, which Arrow takes the file's word for
    numbers = pc.call_function("index_in", [column.indices], pc.SetLookupOptions(value_set=used))
    return pa.DictionaryArray.from_arrays(numbers, strings)
