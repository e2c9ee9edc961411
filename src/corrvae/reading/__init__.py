"""Features from files: wide and long tables, arrays, annotated data and shards, with ids and names if there are some.

`read_features` is the door. `layouts` tells wide tables from long ones; `wide` and `long` read them in batches from
`text` or `parquet`; `arrays` and `annotated` read the formats that need no layout; `matching` finds ids among others.
`sharding` makes shards of long tables that are larger than memory, and `sharded` opens them.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.reading.features import Features as Features
    from corrvae.reading.matching import find_ids as find_ids
    from corrvae.reading.opening import read_features as read_features
    from corrvae.reading.sharding import ShardedTable as ShardedTable
    from corrvae.reading.sharding import shard_tables as shard_tables

_HOMES = {
    "Features": ".features",
    "ShardedTable": ".sharding",
    "find_ids": ".matching",
    "read_features": ".opening",
    "shard_tables": ".sharding",
}
__all__ = ["Features", "ShardedTable", "find_ids", "read_features", "shard_tables"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
