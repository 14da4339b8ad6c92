"""`DeletedInput`: the check for records that were deleted before Spark read them."""

from __future__ import annotations

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log
from kstreams.processor.task.task import DELETED
from kstreams.processor.topology.nodes import reader_of
from kstreams.processor.topology.offset_reset import default_reset, may_be_missed, reset_after_loss
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.spark.exchange.reports import TaskReport
from kstreams.runtime.spark.io.offset_ranges import OffsetRanges
from kstreams.runtime.spark.program import Program


class DeletedInput:
    """The check for deleted input of a step.

    For stateful readers, deleted input is an error. Otherwise the step starts at the first existing record, and the
    deleted records are counted.

    Parameters
    ----------
    program : Program
    log : Log
    """

    def __init__(self, program: Program, log: Log) -> None:
        self._program = program
        self._log = log

    def present(self, ranges: OffsetRanges) -> tuple[dict[TopicPartition, tuple[int, int]], TaskReport]:
        """Return the ranges of existing records, and a report of the deleted ones.

        Raises
        ------
        LogError
            If deleted records must not be skipped; the message names both offsets.
        """
        with self._log.admin() as admin:
            begins = admin.beginning_offsets(list(ranges))
        remaining_ranges = dict(ranges)
        dropped = []
        for source, (start, end) in ranges.items():
            first_offset = min(begins[source], end)
            if first_offset > start:
                remaining_ranges[source] = first_offset, end
                dropped.append((self._source_name(source, start, begins[source]), DELETED, first_offset - start))
        return remaining_ranges, TaskReport(dropped)

    def _source_name(self, source: TopicPartition, start: int, begin: int) -> str:
        """Return the name of the source node that misses records. Raises LogError if it must not miss any."""
        names = []
        for sub in _readers(self._program, source.topic):
            stateful = sub.id in self._program.stateful
            reset_after_loss(sub, source, (start, begin), default_reset(self._program.config), stateful=stateful)
            names += [node.name for node in (reader_of(sub.sources, source.topic),) if node is not None]
        return names[0]


class NothingDeleted:
    """The replacement of `DeletedInput` for steps whose input is not a topic."""

    def present(self, ranges: OffsetRanges) -> tuple[dict[TopicPartition, tuple[int, int]], TaskReport]:
        """Return all ranges, and an empty report."""
        return dict(ranges), TaskReport()


def skippable_topics(program: Program) -> list[str]:
    """Return the topics whose deleted records may be skipped by all readers."""
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
    """Return the sub-topologies that read a topic, without those of global tables."""
    return [sub for sub in program.sub_topologies if not sub.is_global and topic in program.inputs[sub.id]]
