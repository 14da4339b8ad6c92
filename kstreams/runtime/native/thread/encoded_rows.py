"""`EncodedRows`: encoded rows of one topic as columns, before they are sent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.batch import HEADERS_TYPE


class EncodedRows(NamedTuple):
    """Encoded rows of one topic, in order, with the partition of each; and its stream time, where the topic merges."""

    keys: pa.Array
    values: pa.Array
    timestamps: pa.Array
    headers: pa.Array | None
    partitions: np.ndarray[Any, Any]
    stream_times: pa.Array | None = None


def concatenated(parts: list[EncodedRows]) -> EncodedRows:
    """All rows, part after part."""
    if len(parts) == 1:
        return parts[0]
    keys, values, timestamps, headers, partitions, stream_times = zip(*parts, strict=True)
    all_headers = None
    if any(column is not None for column in headers):
        filled = [
            pa.nulls(len(key), HEADERS_TYPE) if column is None else column
            for key, column in zip(keys, headers, strict=True)
        ]
        all_headers = pa.concat_arrays(filled)
    key, value, time = (pa.concat_arrays(column) for column in (keys, values, timestamps))
    merges = stream_times[0] is not None
    times = pa.concat_arrays(stream_times) if merges else None
    return EncodedRows(key, value, time, all_headers, np.concatenate(partitions), times)
