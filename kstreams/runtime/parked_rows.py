"""`ParkedRows`: the rows that the target of a sink refuses, each once in the parking topic of the sink.

A row is parked before the target commits the offset behind it. After a crash between the two, the task reads from its
parking topic which rows it has parked, and does not offer them to the target again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kstreams.connectors.connector import SinkConnector
from kstreams.connectors.positions import rows_of
from kstreams.connectors.refusals import ONE_ATTEMPT
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.kernel.retry import NEVER_CALLED, Attempts
from kstreams.log.api import Log
from kstreams.processor.api.error_handlers import OFFSET, ErrorHandlerContext
from kstreams.processor.context import parking


class ParkedRows:
    """See `Refusals`. The transactional id of the producer belongs to the task, so that a former owner parks no more.

    Parameters
    ----------
    log : Log
    clock : Clock
    connector : SinkConnector
    task : str
        The id of the task, which differs after a reset of the application.
    source : TopicPartition
        The partition that the task reads.
    """

    def __init__(self, log: Log, clock: Clock, connector: SinkConnector, task: str, source: TopicPartition) -> None:
        self._log = log
        self._clock = clock
        self._connector = connector
        self._task = task
        self._parking = TopicPartition(connector.park, source.partition)
        self._producer = log.producer({"transactional.id": f"{connector.id}-{source.partition}-parked"})
        self._is_open = False

    def earlier(self, first_offset: int) -> Collection[int]:
        """Return the offsets of the rows from an offset on that this task has parked."""
        histories = (parking.history(row.headers) for row in rows_of(self._log, self._parking))
        own_offsets = (int(history[OFFSET]) for history in histories if history.get(parking.TASK) == self._task)
        return {offset for offset in own_offsets if offset >= first_offset}

    def take(
        self, records: Batch, errors: Mapping[int, Exception], attempts: Mapping[int, Attempts] = ONE_ATTEMPT
    ) -> None:
        """Park records, as an operator does after its last attempt."""
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True
        now_ms = self._clock.wall_ms()
        for offset, row in zip(records.offsets.tolist(), records.rows(), strict=True):
            context = ErrorHandlerContext(
                topic=records.source.topic,
                partition=records.source.partition,
                offset=offset,
                headers=row.headers,
                timestamp=row.timestamp,
                processor_node_id=self._connector.name,
                task_id=self._task,
                source_raw_key=row.key,
                source_raw_value=row.value,
            )
            calls = attempts.get(offset) or NEVER_CALLED.failed_at(now_ms)
            parked = parking.parked_record(context, self._parking.topic, errors[offset], calls, self._connector.group)
            headers = (*parked.headers, (parking.TASK, self._task.encode()))
            self._producer.send(
                self._parking.topic,
                row.key,
                row.value,
                timestamp=row.timestamp,
                headers=headers,
                partition=self._parking.partition,
            )

    def flush(self) -> None:
        """Commit the rows so far."""
        if self._is_open:
            self._producer.commit_transaction()
            self._is_open = False

    def close(self) -> None:
        """Abort an open transaction, and close the producer."""
        self._producer.close()
