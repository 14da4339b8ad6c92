"""`TimeAlignment`: which records the tasks of one stream thread may process next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment
from kstreams.runtime.native.time_alignment.reader_slices import ReaderSlices
from kstreams.runtime.native.time_alignment.slices import Pace
from kstreams.runtime.native.time_alignment.task_input import TaskInput
from kstreams.runtime.native.time_alignment.writer_slices import IsDrained, WriterSlices


class TimeAlignment:
    """Decides, round by round, which records the tasks of one stream thread may process.

    Parameters
    ----------
    alignment : ProcessAlignment
    readers : ReaderSlices

    Attributes
    ----------
    readers : ReaderSlices
        The order of the rows that the thread reads.
    writers : WriterSlices
        The order of the rows that the thread writes.
    """

    def __init__(self, alignment: ProcessAlignment, readers: ReaderSlices) -> None:
        self.readers = readers
        self.writers = WriterSlices(alignment)
        self._inputs: Sequence[TaskInput] = ()

    @property
    def may_commit(self) -> bool:
        """False while tasks are within a slice that the thread has chosen: their output cannot be sorted yet."""
        return not self.writers.is_open

    def assign(self, inputs: Sequence[TaskInput]) -> None:
        """Decide for these tasks from now on."""
        self._inputs = inputs
        self.readers.assign(inputs)

    def begin_round(self, is_drained: IsDrained) -> None:
        """Allow the records of the latest slices.

        Parameters
        ----------
        is_drained : callable
            Returns whether all records of a partition are buffered.
        """
        self.writers.begin(self._inputs, is_drained)

    def finished(self, is_drained: IsDrained) -> dict[TaskId, Pace]:
        """Return the tasks that are at the end of their slice. Report them when their output is visible."""
        return self.writers.finished(self._inputs, is_drained)

    def report(self, finished: Mapping[TaskId, Pace]) -> None:
        """Report tasks whose output is visible, so that the next slice may begin."""
        self.writers.report(finished)

    def forget(self, task: TaskId) -> None:
        """Note that the thread no longer has a task."""
        self.writers.forget(task)
