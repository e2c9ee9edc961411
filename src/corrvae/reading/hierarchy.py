"""Parts of an HDF5 file, taken from that file alone and only if they are no larger than such a file can hold.

An HDF5 file may name others (links, external storage, virtual tables) and claim any size; neither is believed. It is
read with h5py, which is optional.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from corrvae.errors import DataFileError

if TYPE_CHECKING:
    import h5py  # pyright: ignore[reportMissingImports]

Node: TypeAlias = Any  # a group or a table of h5py, which has no types

# No more than this is packed into a byte by gzip, beyond what any file may claim.
_MOST_TIMES, _ALWAYS_BYTES = 1032, 1 << 24
# What a string takes in a file besides its letters; none of those that are read is there twice.
_STRING_BYTES = 16
# Strings lie elsewhere in the file, and any number of rows may name the same one.
_STRINGS_AT_ONCE = 64
_MOST_OF_AN_ATTRIBUTE = 16
# What h5py itself can unpack: others would be looked for on this machine.
_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf"}


def most_bytes(path: Path) -> int:
    """Give what one table of a file may take in memory."""
    return _MOST_TIMES * path.stat().st_size + _ALWAYS_BYTES


@final
class Hierarchy:
    """An open HDF5 file.

    Parameters
    ----------
    path
        The file.
    file
        As h5py opened it.
    """

    def __init__(self, path: Path, file: "h5py.File") -> None:
        self.path, self.root = path, file
        self._most, self._most_strings = most_bytes(path), path.stat().st_size // _STRING_BYTES

    def child(self, parent: Node, name: str) -> Node | None:
        """Give a part by its name; ``None`` if there is none. Only what lies in this file itself is taken."""
        import h5py  # pyright: ignore[reportMissingImports]

        if not isinstance(parent, h5py.Group) or name not in self.names(parent):
            return None
        if not isinstance(parent.get(name, getlink=True), h5py.HardLink):
            raise DataFileError(self.path, f"{self._spell(parent, name)} is a link; links are not followed")
        return parent[name]

    def names(self, parent: Node) -> list[str]:
        """Give the names of the parts of a group."""
        return [str(name) for name in parent]

    def is_group(self, node: Node) -> bool:
        """Whether this holds other parts."""
        import h5py  # pyright: ignore[reportMissingImports]

        return isinstance(node, h5py.Group)

    def numbers(self, node: Node, what: str) -> np.ndarray:
        """Read a table of numbers."""
        table = self._checked(node, what)
        if table.dtype.kind not in "fiub":
            raise DataFileError(self.path, f"{what} holds {table.dtype}; numbers are expected")
        return np.asarray(table[...])

    def strings(self, node: Node, what: str) -> list[str]:
        """Read a list of strings, hardly any of which occurs twice, or of integers as strings."""
        import h5py  # pyright: ignore[reportMissingImports]

        table = self._checked(node, what)
        if len(table.shape) != 1:
            raise DataFileError(self.path, f"{what} should be a list, not of shape {table.shape}")
        if table.dtype.kind in "iu":
            return [str(value) for value in table[...].tolist()]
        if h5py.check_string_dtype(table.dtype) is None:
            raise DataFileError(self.path, f"{what} holds {table.dtype}; strings are expected")
        if table.dtype.kind == "S":
            return [value.decode("utf-8") for value in table[...].tolist()]
        if len(table) > self._most_strings:
            raise DataFileError(self.path, f"{what} claims {len(table):,} strings, too many for the file's size")
        found: list[str] = []
        left = self._most
        for begin in range(0, len(table), _STRINGS_AT_ONCE):
            piece = [bytes(value).decode("utf-8") for value in table[begin : begin + _STRINGS_AT_ONCE]]
            left -= sum(map(len, piece))
            if left < 0:
                raise DataFileError(self.path, f"{what} takes more than {self._most:,} bytes, too many for its size")
            found += piece
        return found

    def attribute(self, node: Node, *names: str) -> Any:
        """Give the first of these attributes that is there, a string or a few numbers; ``None`` if none is."""
        import h5py  # pyright: ignore[reportMissingImports]

        for name in names:
            if name in node.attrs:
                about = h5py.h5a.open(node.id, name.encode())
                text = h5py.check_string_dtype(about.dtype) is not None
                if math.prod(about.shape) > (1 if text else _MOST_OF_AN_ATTRIBUTE) or not (
                    text or about.dtype.kind in "iu"
                ):
                    raise DataFileError(self.path, f"its attribute {name!r} is of an unexpected kind or size")
                value = node.attrs[name]
                return value.decode("utf-8") if isinstance(value, bytes) else value
        return None

    def _checked(self, node: Node, what: str) -> Node:
        """Refuse a table that is none, that lies in other files, or that claims more than this file can hold."""
        import h5py  # pyright: ignore[reportMissingImports]

        if not isinstance(node, h5py.Dataset) or node.shape is None:
            raise DataFileError(self.path, f"{what} is missing, or is no table")
        if node.is_virtual or node.external:
            raise DataFileError(self.path, f"{what} lies in other files; it is read from one file only")
        plan = node.id.get_create_plist()
        for position in range(plan.get_nfilters()):
            if plan.get_filter(position)[0] not in _FILTERS:
                known = ", ".join(_FILTERS.values())
                raise DataFileError(self.path, f"{what} is packed in a way that is not one of {known}")
        claimed = max(math.prod(node.shape), math.prod(node.chunks or (1,))) * max(1, node.dtype.itemsize)
        if claimed > self._most:
            raise DataFileError(self.path, f"{what} claims {claimed:,} bytes, too many for the file's size")
        return node

    def _spell(self, parent: Node, name: str) -> str:
        return f"{str(parent.name).rstrip('/')}/{name}".lstrip("/")
