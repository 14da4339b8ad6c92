"""`RestoreDeserializer`: the form of a source topic's records from which a store is restored."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch
from kstreams.kernel.clock import Clock
from kstreams.kernel.timestamps import FailOnInvalidTimestamp, are_valid, extracted, extractor_of
from kstreams.processor.topology.nodes import SourceNode
from kstreams.record import Record
from kstreams.serdes import BytesSerde
from kstreams.serdes.base import failing_rows
from kstreams.serdes.registry import same_bytes_when_equal


class RestoreDeserializer:
    """The records of a topic as a source had read them before.

    The source dropped records that do not decode, else the application would have failed: they are dropped again.

    Parameters
    ----------
    source : SourceNode
    default_extractor
        `default.timestamp.extractor`, for a source without an extractor.
    clock : Clock
    """

    def __init__(self, source: SourceNode, default_extractor: object, clock: Clock) -> None:
        default = extractor_of(default_extractor)
        self._extract = source.timestamp_extractor or default or FailOnInvalidTimestamp()
        self._key = source.key or BytesSerde()
        self._value = source.value or BytesSerde()
        self._clock = clock
        self._partition_time = -1

    def __call__(self, batch: Batch) -> Batch:
        """Return the records that decode and have a key, with event times, and with keys as their serde writes them.

        Other programs may write the same key in other bytes, such as JSON with spaces, and stores compare bytes.
        """
        batch = batch.filter(self._is_good(batch))
        batch.keys = self._key.framed(batch.keys, batch.headers)
        batch.values = self._value.framed(batch.values, batch.headers)  # the store has bytes and no headers
        if not same_bytes_when_equal(self._key):
            batch.keys = self._key.encode_rows(self._key.decode_rows(batch.keys))
        times = self._times(batch)
        batch.timestamps = pa.array(times, pa.int64())
        batch = batch.filter(are_valid(times))
        if len(batch):
            self._partition_time = max(self._partition_time, int(batch.timestamps.to_numpy().max()))
        return batch

    def _is_good(self, batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        good: np.ndarray[tuple[int], np.dtype[np.bool_]] = batch.keys.is_valid().to_numpy(zero_copy_only=False)
        for column, serde in ((batch.keys, self._key), (batch.values, self._value)):
            for row, _ in failing_rows(serde.decode_rows, serde.framed(column, batch.headers)):
                good[row] = False
        return good

    def _times(self, batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        timestamps = batch.timestamps.to_numpy()
        if isinstance(self._extract, FailOnInvalidTimestamp):
            # An extractor that fell back to the partition time had one, possibly from records that are not read again.
            return self._extract.times(timestamps, max(self._partition_time, 0), self._clock)
        rows = zip(self._key.decode_rows(batch.keys), self._value.decode_rows(batch.values), timestamps, strict=True)
        records = (
            Record(key=key, value=value, timestamp=int(time), headers=headers)
            for (key, value, time), headers in zip(rows, batch.header_rows(), strict=True)
        )
        times = extracted(self._extract, records, self._partition_time)
        return np.array([-1 if isinstance(time, Exception) else time for time in times], dtype=np.int64)
