"""Features from files: wide tables, long ones, arrays and annotated data, with ids and names where files have them.

`read_features` is the door. `layouts` tells wide tables from long ones; `wide` and `long` read them in batches from
`text` or `parquet`; `arrays` and `annotated` read the formats that need no layout; `matching` finds ids among others.
"""

from typing import TYPE_CHECKING

from corrvae._lazy import attach as _attach

if TYPE_CHECKING:
    from corrvae.reading.features import Features as Features
    from corrvae.reading.matching import find_ids as find_ids
    from corrvae.reading.opening import read_features as read_features

_HOMES = {"Features": ".features", "find_ids": ".matching", "read_features": ".opening"}
__all__ = ["Features", "find_ids", "read_features"]

__getattr__, __dir__ = _attach(__name__, _HOMES)
