"""The records of a changelog topic: what a store changed as a batch, and back.

Where the values of a store have headers, these are the headers of the records there, as in Kafka Streams; `Changes`
have them beside the value, in its bytes.
"""

from __future__ import annotations

import numpy as np

from kstreams.kernel.batch import Batch, TopicPartition, headers_column
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.values_with_headers import joined, parted


def as_records(builder: StoreBuilder, source: TopicPartition, changes: Changes) -> Batch:
    """Changes of a store as records that are to be written to its changelog."""
    offsets = np.arange(len(changes), dtype=np.int64)
    if not builder.kind.headers:
        return Batch(source, offsets, *changes)
    values, headers = parted(changes.values)
    return Batch(source, offsets, changes.keys, values, changes.timestamps, headers_column(headers))


def as_changes(builder: StoreBuilder, batch: Batch) -> Changes:
    """Records of the changelog of a store as its changes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kstreams.state import Stores
    >>> builder = Stores.timestamped_key_value_with_headers("last", key=str, value=str)
    >>> rows = joined(pa.array([b"v"]), [(("trace", b"7"),)])
    >>> changes = Changes(pa.array([b"a"]), rows, pa.array([5]))
    >>> records = as_records(builder, TopicPartition("changelog", 0), changes)
    >>> records.values.to_pylist(), records.header_rows()
    ([b'v'], [(('trace', b'7'),)])
    >>> as_changes(builder, records) == changes
    True
    """
    if not builder.kind.headers:
        return Changes(batch.keys, batch.values, batch.timestamps)
    return Changes(batch.keys, joined(batch.values, batch.header_rows()), batch.timestamps)
