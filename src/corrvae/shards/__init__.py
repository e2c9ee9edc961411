"""Sparse tables on the disk, larger than memory: CSR arrays of ranges of rows, read where they are.

`ShardedMatrix` is such a table; `folder` opens it with its ids and names, `writing` writes it, `sorting` puts entries
that come in any order into the order of rows, within a bounded memory, and `files` knows the arrays themselves.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.shards.folder import ShardFolder as ShardFolder
    from corrvae.shards.folder import open_shards as open_shards
    from corrvae.shards.matrix import ShardedMatrix as ShardedMatrix
    from corrvae.shards.writing import write_shards as write_shards

_HOMES = {
    "ShardFolder": ".folder",
    "ShardedMatrix": ".matrix",
    "open_shards": ".folder",
    "write_shards": ".writing",
}
__all__ = ["ShardFolder", "ShardedMatrix", "open_shards", "write_shards"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
