"""Ids that are strings, in Arrow's columns, as numbers."""

from typing import TYPE_CHECKING

import numpy as np

from corrvae.graphs.pairs import CodedPairs, code_pairs

if TYPE_CHECKING:
    import pyarrow


def code_strings(columns: "list[pyarrow.ChunkedArray]") -> CodedPairs:
    """Number the distinct strings of two columns, sorted as Python sorts them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = [chunk for column in columns for chunk in column.cast(pa.string()).chunks]
    if not sum(map(len, chunks)):
        return code_pairs([])
    encoded = pa.chunked_array(chunks).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    # the order of UTF-8 bytes is that of Python's strings
    order = pc.call_function("array_sort_indices", [encoded.dictionary])
    number = np.empty(len(order), dtype=np.int64)
    number[order.to_numpy()] = np.arange(len(order))
    codes = number[encoded.indices.to_numpy()].reshape(2, -1).T
    distinct = encoded.dictionary.take(order).to_numpy(zero_copy_only=False)
    return CodedPairs(np.ascontiguousarray(codes), distinct)
