"""`BoundedRun`: where every input of a run ends, and when all that follows from it has been processed.

Sub-topologies that feed each other in a circle form one completion group; any other is a group of its own. A group is
done when the groups upstream of it are, and everything in its inputs has been processed and committed. A task reports
only what is committed, so nothing it has written can be missing when the end offsets are read: the check is exact, with
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
    """When a run ends by itself."""

    NEVER = "never"
    ONCE = "once"  # everything that the topics hold at its start is processed, and all that follows from it
    INPUT = "input"  # the same; the input is then over for good
    SETTLED = "settled"  # all that follows from the input processed before is processed; of the input nothing


class Phase(Enum):
    """How far a completion group is."""

    OPEN = "open"
    ENDING = "ending"  # all input is processed; tasks process the end of it
    DONE = "done"


@dataclass
class CompletionGroup:
    """Sub-topologies that finish together."""

    sub_topologies: frozenset[int]
    before: frozenset[int]
    tasks: tuple[TaskPlan, ...]
    phase: Phase = Phase.OPEN
    reported: dict[TaskId, NextOffsets] = field(default_factory=dict)
    ended: set[TaskId] = field(default_factory=set)


class BoundedRun:
    """A run that ends with its input; shared by all threads.

    Parameters
    ----------
    layout : Layout
    until_end : bool
        Whether tasks process the end of their input (windows close), or only stop.
    ends : mapping of TopicPartition to int
        Where the inputs from outside end.
    end_offsets : callable
        The ends of internal partitions at the time of asking, open transactions included: what they hold follows.
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
        """Where an input ends; None as long as sub-topologies upstream may still write.

        What sub-topologies that feed each other in a circle write has no end before they all are done: for such an
        input the present end is given, so that no task waits for itself.
        """
        with self._lock:
            return self._end_of(source, self._group_of[reader])

    def phase(self, sub_topology: int) -> Phase:
        """How far the group of a sub-topology is."""
        return self._group_of[sub_topology].phase

    def report(self, task: TaskId, positions: NextOffsets, ended: bool) -> None:
        """Note what a task has processed and committed."""
        with self._lock:
            group = self._group_of[task.sub_topology]
            group.reported[task] = dict(positions)
            if ended:
                group.ended.add(task)
            else:
                group.ended.discard(task)

    def advance(self) -> None:
        """Advance the groups whose input is processed."""
        with self._lock:
            for group in self._groups:
                if group.phase is not Phase.DONE and self._is_quiet(group):
                    all_ended = len(group.ended) == len(group.tasks)
                    group.phase = Phase.ENDING if self._until_end and not all_ended else Phase.DONE

    def _is_quiet(self, group: CompletionGroup) -> bool:
        if any(self._group_of[sub].phase is not Phase.DONE for sub in group.before):
            return False
        if len(group.reported) < len(group.tasks):
            return False
        return all(self._is_drained(group, positions) for positions in group.reported.values())

    def _is_drained(self, group: CompletionGroup, positions: NextOffsets) -> bool:
        return all(at >= (self._end_of(source, group) or 0) for source, at in positions.items())

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
    """The completion groups, each after those that feed it."""
    return [_group(members, layout) for members in processing_order(layout.upstream)]


def _group(members: frozenset[int], layout: Layout) -> CompletionGroup:
    before = frozenset().union(*(reachable(sub, layout.upstream) for sub in members)) - members
    return CompletionGroup(members, before, tuple(task for task in layout.tasks if task.id.sub_topology in members))


def aligned_sub_topologies(layout: Layout) -> frozenset[int]:
    """The sub-topologies whose tasks advance together: those that write repartition topics.

    Sub-topologies that feed each other in a circle are not among them: they would wait for themselves.
    """
    writers = frozenset[int]().union(*layout.upstream.values())
    return writers - in_cycles(layout.upstream)
