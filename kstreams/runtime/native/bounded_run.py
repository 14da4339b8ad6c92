"""Bounded runs: where every input ends, and when all that follows from it has been processed. Shared by all threads.

Sub-topologies are grouped into stages: those that feed each other in a circle belong together, any other is a stage of
its own. A stage is done when the stages before it are, and everything in its inputs has been processed and committed.
What a task reports was committed before, so nothing it has written can be missing when the ends are asked for: the
check is exact, with any number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from kstreams.batch import TopicPartition
from kstreams.processor.topology.layout import Layout, TaskPlan
from kstreams.processor.topology.processing_order import feeding_in_circles, reachable, stages_of
from kstreams.processor.topology.task_id import TaskId

NextOffsets = Mapping[TopicPartition, int]
EndOffsets = Callable[[Collection[TopicPartition]], NextOffsets]


class Phase(Enum):
    """How far a stage is."""

    OPEN = "open"
    ENDING = "ending"  # all input is processed; tasks are told that it is over
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
    """The bounds of one run.

    Parameters
    ----------
    layout : Layout
    until_end : bool
        Whether tasks are told that their input is over, or only stop.
    ends : mapping of TopicPartition to int
        Where the inputs from outside end.
    end_offsets : callable
        The ends of internal partitions at the time of asking, open transactions included: what they hold follows.
    """

    def __init__(self, layout: Layout, until_end: bool, ends: NextOffsets, end_offsets: EndOffsets) -> None:
        self._until_end, self._end_offsets = until_end, end_offsets
        self._lock = threading.Lock()
        self._stages = _stages(layout)
        self._stage_of = {sub: stage for stage in self._stages for sub in stage.sub_topologies}
        self._writers = {topic: layout.upstream[sub] for sub, topics in layout.inputs.items() for topic in topics}
        self._ends = dict(ends)

    def end_of(self, source: TopicPartition, reader: int) -> int | None:
        """Where an input ends; None as long as sub-topologies before it may still write.

        What sub-topologies that feed each other in a circle write has no end before they all are done: for such an
        input the present end is given, so that no task waits for itself.
        """
        with self._lock:
            return self._end_of(source, self._stage_of[reader])

    def phase(self, sub_topology: int) -> Phase:
        """How far the stage of a sub-topology is."""
        return self._stage_of[sub_topology].phase

    def report(self, task: TaskId, positions: NextOffsets, ended: bool) -> None:
        """Take note of what a task has processed and committed."""
        with self._lock:
            stage = self._stage_of[task.sub_topology]
            stage.reported[task] = dict(positions)
            if ended:
                stage.ended.add(task)
            else:
                stage.ended.discard(task)

    def advance(self) -> None:
        """Move stages on whose input is processed."""
        with self._lock:
            for stage in self._stages:
                if stage.phase is not Phase.DONE and self._is_quiet(stage):
                    told = len(stage.ended) == len(stage.tasks)
                    stage.phase = Phase.ENDING if self._until_end and not told else Phase.DONE

    def _is_quiet(self, stage: CompletionGroup) -> bool:
        if any(self._stage_of[sub].phase is not Phase.DONE for sub in stage.before):
            return False
        if len(stage.reported) < len(stage.tasks):
            return False
        return all(self._is_drained(stage, positions) for positions in stage.reported.values())

    def _is_drained(self, stage: CompletionGroup, positions: NextOffsets) -> bool:
        return all(at >= (self._end_of(source, stage) or 0) for source, at in positions.items())

    def _end_of(self, source: TopicPartition, stage: CompletionGroup) -> int | None:
        if source in self._ends:
            return self._ends[source]
        writers = self._writers[source.topic]
        if writers & stage.sub_topologies:
            return self._end_offsets([source])[source]
        if any(self._stage_of[sub].phase is not Phase.DONE for sub in writers):
            return None
        self._ends[source] = self._end_offsets([source])[source]
        return self._ends[source]


def _stages(layout: Layout) -> list[CompletionGroup]:
    """The stages, each after those that feed it."""
    return [_stage(members, layout) for members in stages_of(layout.upstream)]


def _stage(members: frozenset[int], layout: Layout) -> CompletionGroup:
    before = frozenset().union(*(reachable(sub, layout.upstream) for sub in members)) - members
    return CompletionGroup(members, before, tuple(task for task in layout.tasks if task.id.sub_topology in members))


def aligned_sub_topologies(layout: Layout) -> frozenset[int]:
    """The sub-topologies whose tasks advance together: those that write repartition topics.

    Sub-topologies that feed each other in a circle are not among them: they would wait for themselves.
    """
    writers = frozenset[int]().union(*layout.upstream.values())
    return writers - feeding_in_circles(layout.upstream)
