"""Input that was deleted before Spark read it: an error where state depends on it, else left out and counted."""

from __future__ import annotations

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log
from kstreams.processor.task.task import DELETED
from kstreams.processor.topology.offset_reset import default_reset, may_be_missed, reset_after_loss
from kstreams.processor.topology.readers import reader_of
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.exchange.reports import TaskReport
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.program import Program


class DeletedInput:
    """What is missing of the input of a step. Where it may be, reading goes on with the first record that is there.

    Parameters
    ----------
    program : Program
    log : Log
    """

    def __init__(self, program: Program, log: Log) -> None:
        self._program = program
        self._log = log

    def present(self, ranges: OffsetRanges) -> tuple[dict[TopicPartition, tuple[int, int]], TaskReport]:
        """The records that are there, and a report of the others.

        Raises
        ------
        LogError
            When records were deleted that must not be missed; names both offsets.
        """
        with self._log.admin() as admin:
            begins = admin.beginning_offsets(list(ranges))
        remaining_ranges = dict(ranges)
        dropped = []
        for source, (start, end) in ranges.items():
            goes_on = min(begins[source], end)
            if goes_on > start:
                remaining_ranges[source] = goes_on, end
                dropped.append((self._missed(source, start, begins[source]), DELETED, goes_on - start))
        return remaining_ranges, TaskReport(dropped)

    def _missed(self, source: TopicPartition, start: int, begin: int) -> str:
        """The name of the source node that misses records."""
        names = []
        for sub in _readers(self._program, source.topic):
            stateful = sub.id in self._program.stateful
            reset_after_loss(sub, source, (start, begin), default_reset(self._program.config), stateful=stateful)
            names += [node.name for node in (reader_of(sub.sources, source.topic),) if node is not None]
        return names[0]


class NothingDeleted:
    """In its place where the input of steps is no topic."""

    def present(self, ranges: OffsetRanges) -> tuple[dict[TopicPartition, tuple[int, int]], TaskReport]:
        """All of it."""
        return dict(ranges), TaskReport()


def topics_to_miss(program: Program) -> list[str]:
    """The topics of which records may be missing: those whose readers all agree."""
    topics = sorted({topic for read in program.inputs.values() for topic in read} - program.internal)
    return [
        topic
        for topic in topics
        if all(
            may_be_missed(sub, topic, default_reset(program.config), stateful=sub.id in program.stateful)
            for sub in _readers(program, topic)
        )
    ]


def _readers(program: Program, topic: str) -> list[SubTopology]:
    """The sub-topologies that read a topic, those of global tables aside."""
    return [sub for sub in program.sub_topologies if not sub.is_global and topic in program.inputs[sub.id]]
