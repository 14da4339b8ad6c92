"""Records for sinks, and what a worker does with a writer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import RefusedRow, Sink, SinkBatch, SinkTask, SinkWriter

PRICE = pa.struct([pa.field("amount", pa.float64()), pa.field("currency", pa.string())])


def batch(
    keys: Sequence[Any],
    values: Sequence[Any],
    *,
    first_offset: int = 0,
    key_type: pa.DataType | None = None,
    value_type: pa.DataType = PRICE,
) -> SinkBatch:
    return SinkBatch(
        partition=0,
        offsets=np.arange(first_offset, first_offset + len(values), dtype=np.int64),
        keys=pa.array(keys, key_type or pa.string()),
        values=pa.array(values, value_type),
        timestamps=pa.array([0] * len(values), pa.int64()),
    )


def opened(sink: Sink, connector: str = "shop", partition: int = 0, value_type: pa.DataType = PRICE) -> Any:
    return sink.open(SinkTask(connector, "prices", partition, value_type))


def committed(writer: SinkWriter, records: SinkBatch) -> Sequence[RefusedRow]:
    """Write records and commit after them."""
    writer.write(records)
    refused = writer.flush()
    writer.commit(int(records.offsets[-1]) + 1)
    return refused


def written(sink: Sink, records: SinkBatch, **task: Any) -> Sequence[RefusedRow]:
    """Write records with a writer of their own, and commit."""
    writer = opened(sink, value_type=records.values.type, **task)
    try:
        return committed(writer, records)
    finally:
        writer.close()
