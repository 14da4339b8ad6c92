"""`Refusals`: what takes the rows that the target of a sink refuses, such as `DeadLettersOfTask`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from kstreams.connectors.dead_letters import DeadLetter, DeadLetters
from kstreams.kernel.batch import Batch
from kstreams.kernel.retry import Attempts

ONE_ATTEMPT: Mapping[int, Attempts] = MappingProxyType({})


class Refusals(Protocol):
    """Takes the rows of one task that its target refuses."""

    def earlier(self, first_offset: int) -> Collection[int]:
        """Return the rows from an offset on that were taken before a crash. The target is not asked again for them."""
        ...

    def take(
        self, records: Batch, errors: Mapping[int, Exception], attempts: Mapping[int, Attempts] = ONE_ATTEMPT
    ) -> None:
        """Take records, with the last error for each of their offsets, and the attempts if there were several."""
        ...

    def flush(self) -> None:
        """Wait until all rows so far are durable."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class DeadLettersOfTask:
    """Dead letters as `Refusals`. A crash before the commit repeats some."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def earlier(self, first_offset: int) -> Collection[int]:
        return ()

    def take(
        self, records: Batch, errors: Mapping[int, Exception], attempts: Mapping[int, Attempts] = ONE_ATTEMPT
    ) -> None:
        for index, offset in enumerate(records.offsets.tolist()):
            self._letters.add(DeadLetter.of_record(records, index, "TASK_PUT", errors[offset]))

    def flush(self) -> None:
        self._letters.flush()

    def close(self) -> None:
        """Do nothing: all tasks of the connector share the producer."""
