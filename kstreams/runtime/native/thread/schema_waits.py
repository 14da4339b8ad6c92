"""`SchemaWaits`: inputs whose next record has a schema that a registry which is away cannot tell."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from kstreams.errors import RegistryUnavailableError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.processor.task.task import Task
from kstreams.schemas.patient import Patience, without_waiting

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wait:
    """When an input began to wait, when its registry is asked again, and the backoff after that."""

    since_ms: int
    until_ms: int
    backoff_ms: int


class SchemaWaits:
    """The waits of one thread. Records before the unknown schema are processed, and other inputs go on.

    Parameters
    ----------
    patience : Patience
    clock : Clock
    """

    def __init__(self, patience: Patience, clock: Clock) -> None:
        self._patience = patience
        self._clock = clock
        self._waits: dict[TopicPartition, _Wait] = {}

    def paused(self) -> set[TopicPartition]:
        """The inputs that are not to be read before their next retry."""
        if not self._waits:
            return set()
        now_ms = self._clock.uptime_ms()
        return {source for source, wait in self._waits.items() if now_ms < wait.until_ms}

    def retain(self, sources: Collection[TopicPartition]) -> None:
        """Drop the waits of all inputs but these: the thread does not read them any more."""
        self._waits = {source: wait for source, wait in self._waits.items() if source in sources}

    def readable(self, batch: Batch, task: Task) -> int:
        """Return how many rows of a batch, from the first one on, the task can decode now.

        Raises
        ------
        RegistryUnavailableError
            When the registry has not answered for the whole timeout.
        """
        with without_waiting():
            missing_schema = task.missing_schema(batch)
        if missing_schema is None:
            self._waits.pop(batch.source, None)
            return len(batch)
        row, error = missing_schema
        if row:
            self._waits.pop(batch.source, None)  # a wait begins when the record is the next one
        self._wait(batch.source, error)
        return row

    def _wait(self, source: TopicPartition, error: RegistryUnavailableError) -> None:
        now_ms = self._clock.uptime_ms()
        patience = self._patience
        wait = self._waits.setdefault(source, _Wait(now_ms, now_ms, patience.first_wait_ms))
        remaining_ms = wait.since_ms + patience.timeout_ms - now_ms
        if remaining_ms <= 0:
            raise error
        logger.warning("%s waits for the schema registry, for %.0f s at most: %s", source, remaining_ms / 1000, error)
        wait.until_ms = now_ms + min(wait.backoff_ms, remaining_ms)
        wait.backoff_ms = min(2 * wait.backoff_ms, patience.longest_wait_ms)
