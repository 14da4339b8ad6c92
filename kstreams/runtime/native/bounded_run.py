"""`BoundedRun`: the ends of all inputs of a run, and whether everything up to them is processed.

Sub-topologies that form a cycle are one completion group, and any other sub-topology is a group by itself. A group is
done when all groups upstream are done, and all records of its inputs are processed and committed. A task reports
committed offsets only, so the end offsets of its outputs include everything that it has written. The check is exact for
any number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.topology.barriers import in_cycles, processing_order, reachable
from kstreams.processor.topology.layout import Layout, TaskPlan
from kstreams.processor.topology.sub_topologies import TaskId

NextOffsets = Mapping[TopicPartition, int]
EndOffsets = Callable[[Collection[TopicPartition]], NextOffsets]


class RunEnd(Enum):
    """The end of a run."""

    NEVER = "never"
    ONCE = "once"  # the records that the topics hold at the start are processed, and everything that follows from them
    INPUT = "input"  # like ONCE, and then the input ends for good: windows close
    SETTLED = "settled"  # no input is processed, only what follows from the input that was processed before


class Phase(Enum):
    """The phase of a completion group."""

    OPEN = "open"
    ENDING = "ending"  # all input is processed, and tasks process the end of the input
    DONE = "done"


@dataclass
class CompletionGroup:
    """Sub-topologies that finish together."""

    sub_topologies: frozenset[int]
    upstream: frozenset[int]
    tasks: tuple[TaskPlan, ...]
    phase: Phase = Phase.OPEN
    positions: dict[TaskId, NextOffsets] = field(default_factory=dict)
    """The committed offsets of each task."""
    ended_tasks: set[TaskId] = field(default_factory=set)
    """The tasks that have processed the end of their input."""


class BoundedRun:
    """A run that ends with its input. All threads share it.

    Parameters
    ----------
    layout : Layout
    until_end : bool
        True if tasks process the end of their input, which closes windows. False if they only stop.
    ends : mapping of TopicPartition to int
        The end offsets of external inputs.
    end_offsets : callable
        Returns the present end offsets of internal partitions, including open transactions.
    """

    def __init__(self, layout: Layout, until_end: bool, ends: NextOffsets, end_offsets: EndOffsets) -> None:
        self._until_end = until_end
        self._end_offsets = end_offsets
        self._lock = threading.Lock()
        self._groups = _groups(layout)
        self._group_of = {sub: group for group in self._groups for sub in group.sub_topologies}
        self._writers = {topic: layout.upstream[sub] for sub, topics in layout.inputs.items() for topic in topics}
        self._ends = dict(ends)

    def end_of(self, source: TopicPartition, reader: int) -> int | None:
        """Return the end offset of an input, or None while sub-topologies upstream may still write.

        An input inside a cycle has no end before the whole cycle is done. Its present end is returned, so that no task
        waits for itself.
        """
        with self._lock:
            return self._end_of(source, self._group_of[reader])

    def phase(self, sub_topology: int) -> Phase:
        """Return the phase of a sub-topology's group."""
        return self._group_of[sub_topology].phase

    def report(self, task: TaskId, positions: NextOffsets, ended: bool) -> None:
        """Store the offsets that a task has processed and committed."""
        with self._lock:
            group = self._group_of[task.sub_topology]
            group.positions[task] = dict(positions)
            if ended:
                group.ended_tasks.add(task)
            else:
                group.ended_tasks.discard(task)

    def advance(self) -> None:
        """Advance each group whose input is processed."""
        with self._lock:
            for group in self._groups:
                if group.phase is not Phase.DONE and self._is_processed(group):
                    all_ended = len(group.ended_tasks) == len(group.tasks)
                    group.phase = Phase.ENDING if self._until_end and not all_ended else Phase.DONE

    def _is_processed(self, group: CompletionGroup) -> bool:
        """Return True if all records of the group's inputs are processed, and no more can follow."""
        if any(self._group_of[sub].phase is not Phase.DONE for sub in group.upstream):
            return False
        if len(group.positions) < len(group.tasks):
            return False
        return all(self._are_at_end(group, positions) for positions in group.positions.values())

    def _are_at_end(self, group: CompletionGroup, positions: NextOffsets) -> bool:
        return all(offset >= (self._end_of(source, group) or 0) for source, offset in positions.items())

    def _end_of(self, source: TopicPartition, group: CompletionGroup) -> int | None:
        if source in self._ends:
            return self._ends[source]
        writers = self._writers[source.topic]
        if writers & group.sub_topologies:
            return self._end_offsets([source])[source]
        if any(self._group_of[sub].phase is not Phase.DONE for sub in writers):
            return None
        self._ends[source] = self._end_offsets([source])[source]
        return self._ends[source]


def _groups(layout: Layout) -> list[CompletionGroup]:
    """Return the completion groups in the order of the data."""
    return [_group(members, layout) for members in processing_order(layout.upstream)]


def _group(members: frozenset[int], layout: Layout) -> CompletionGroup:
    upstream = frozenset().union(*(reachable(sub, layout.upstream) for sub in members)) - members
    return CompletionGroup(members, upstream, tuple(task for task in layout.tasks if task.id.sub_topology in members))


def aligned_sub_topologies(layout: Layout) -> frozenset[int]:
    """Return the sub-topologies whose tasks advance in time together: those that write repartition topics.

    Sub-topologies in a cycle are left out, since they would wait for themselves.
    """
    writers = frozenset[int]().union(*layout.upstream.values())
    return writers - in_cycles(layout.upstream)
