"""`ReadableRows`: the rows of a topic decoded for a sink. Those that do not decode become dead letters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import SinkBatch
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.connector import ConnectorTopic
from kstreams.connectors.dead_letters import DeadLetter, DeadLetters
from kstreams.errors import SerdeError
from kstreams.kernel.batch import Batch
from kstreams.serdes.base import failing_rows

_BYTES_AT_ONCE = 8 << 20


class ReadableRows:
    """Decodes rows, some megabytes at a time: decoded rows take several times as much memory.

    Parameters
    ----------
    topic : ConnectorTopic
    letters : DeadLetters
    """

    def __init__(self, topic: ConnectorTopic, letters: DeadLetters) -> None:
        self._letters = letters
        self._keys = ValueColumns(topic.key)
        self._values = ValueColumns(topic.value)
        self.value_type: pa.DataType = self._values.type or pa.null()

    def of(self, batch: Batch) -> Iterator[SinkBatch]:
        """Yield the rows that decode."""
        size = batch.keys.nbytes + batch.values.nbytes
        rows = max(len(batch) * _BYTES_AT_ONCE // max(size, 1), 1)
        for begin in range(0, len(batch), rows):
            decoded = self._decoded(batch.slice(begin, begin + rows))
            if len(decoded):
                yield decoded

    def _decoded(self, batch: Batch) -> SinkBatch:
        try:
            return self._columns(batch)
        except (SerdeError, pa.ArrowException):
            return self._columns(self._without_undecodable(batch))

    def _columns(self, batch: Batch) -> SinkBatch:
        keys = self._keys.decode(batch.keys)
        values = self._values.decode(batch.values)
        return SinkBatch(batch.source.partition, batch.offsets, keys, values, batch.timestamps)

    def _without_undecodable(self, batch: Batch) -> Batch:
        errors = dict(failing_rows(self._keys.decode, batch.keys))
        errors |= dict(failing_rows(self._values.decode, batch.values))
        for index, error in sorted(errors.items()):
            self._letters.add(DeadLetter.of_record(batch, index, "VALUE_CONVERTER", error))
        return batch.filter(np.array([index not in errors for index in range(len(batch))]))
