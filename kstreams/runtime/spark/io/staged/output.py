"""`StagedOutput`: what attempts of tasks write in a step is staged in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch
from kstreams.runtime.spark.io.output_topics import OpenedTopics, OutputTopics, RowWriter
from kstreams.runtime.spark.io.staged.rows import StagedRows

_MOST_BYTES = 32 * 1024 * 1024
"""In an object, about."""


@dataclass(frozen=True)
class StagedOutput:
    """See `StepOutput`.

    Parameters
    ----------
    topics : OutputTopics
    rows : StagedRows
    step : int
    """

    topics: OutputTopics
    rows: StagedRows
    step: int

    def writer(self, name: str) -> RowWriter:
        """What one attempt of a task writes with."""
        return _StagingWriter(OpenedTopics(self.topics, {}), self.rows, self.step, name)


class _StagingWriter:
    """Stages rows piece by piece. What their topic would never take is refused here: later is too late."""

    def __init__(self, topics: OpenedTopics, rows: StagedRows, step: int, name: str) -> None:
        self._topics = topics
        self._rows = rows
        self._step = step
        self._name = name
        self._gathered = list[Batch]()
        self._num_bytes = 0
        self._written = list[str]()

    def send(self, batch: Batch) -> None:
        """Take rows of one partition; makes the topic if need be."""
        named = self._topics.named(batch)
        for error in self._topics.refused(named).values():
            raise error
        self._gathered.append(named)
        self._num_bytes += named.keys.nbytes + named.values.nbytes
        if self._num_bytes >= _MOST_BYTES:
            self._stage()

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        return self._topics.refused(self._topics.named(batch))

    def prepare(self) -> list[str]:
        """Stage all that is left; the objects that hold what was written."""
        if self._gathered:
            self._stage()
        return self._written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._topics.close()

    def _stage(self) -> None:
        self._written.append(self._rows.write(self._step, self._name, self._gathered))
        self._gathered = []
        self._num_bytes = 0
