"""Changelog records as a stream of Arrow: what state files and bundles hold of a store."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from kstreams.state.api import Changes

SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def encoded_changes(parts: Iterable[Changes]) -> pa.Buffer:
    """The stream, a batch for each part.

    Examples
    --------
    >>> raw = encoded_changes([Changes(pa.array([b"a"]), pa.array([None], pa.binary()), pa.array([5]))])
    >>> pa.ipc.open_stream(raw).read_all().to_pylist()
    [{'key': b'a', 'value': None, 'timestamp': 5}]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=_OPTIONS) as writer:
        for part in parts:
            writer.write_batch(pa.RecordBatch.from_arrays(list(part), schema=SCHEMA))
    return sink.getvalue()
