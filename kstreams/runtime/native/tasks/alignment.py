"""`Alignment`: the writers of each repartition topic keep in step in event time while one of them reads history.

Otherwise one task could read a whole year before another begins, and the tasks behind the repartition topic would drop
all of the other's records as late. The writers may be in several threads and processes. They go slice by slice: all
write their part of a slice, and make it visible, before any begins the next (`next_slice`). Each row carries the slice,
its writer and the stream time at which it was written (`row_tags.py`), by which its reader puts the rows of a slice in
order (`SliceBuffer`). When all have been at the end of their input, nobody waits any more, and rows carry nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

from kstreams.processor.topology.layout import Layout
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.group.messages import Pace, Slice, slowest

_FIRST = Slice()


class Alignment:
    """The slices that the writers in this process keep to.

    Parameters
    ----------
    layout : Layout
    sub_topologies : collection of int
        Those that write repartition topics. A single task has nobody to wait for, but those that read what it writes
        have history to read as long as it has.
    is_shared : bool
        Whether the writers may be in several threads: then their readers put the rows in order.

    Attributes
    ----------
    writers : dict of int to list of TaskId
        By sub-topology.
    topics : dict of str to int
        Which sub-topology writes an internal topic.
    timed : frozenset of str
        The internal topics in a bounded run whose rows tell their readers how far the writer had come
        (`Batch.written_at`): those of tasks that write to such a topic themselves, or read it beside another one.
    slices : mapping of int to Slice
        The latest of each sub-topology.
    settled : collection of int
        The sub-topologies none of whose tasks has history to read.
    changed : Event
        Set when a writer has come further.
    """

    def __init__(self, layout: Layout, sub_topologies: Collection[int], *, is_shared: bool = True) -> None:
        self.is_shared = is_shared
        tasks: dict[int, list[TaskId]] = {}
        self.topics: dict[str, int] = {}
        for plan in layout.tasks:
            tasks.setdefault(plan.id.sub_topology, []).append(plan.id)
        self.writers = {sub: tasks[sub] for sub in sub_topologies if sub in tasks}
        for plan in layout.tasks:
            if plan.id.sub_topology in self.writers:
                names = {sink.topic for sink in plan.sub_topology.sinks if isinstance(sink.topic, str)}
                internal = names & layout.topic_names.keys()
                self.topics |= dict.fromkeys((layout.topic_names[name] for name in internal), plan.id.sub_topology)
        timed = (topic for topic in self.topics if not is_shared and self._meets_others(topic, layout))
        self.timed = frozenset(timed)
        self.slices: Mapping[int, Slice] = {}
        self.settled: Collection[int] = ()
        self.changed = threading.Event()
        self._lock = threading.Lock()
        self._paces: dict[TaskId, Pace] = {}

    def _meets_others(self, topic: str, layout: Layout) -> bool:
        """Whether its records come to a task with others, or what follows from them is merged again."""
        read = layout.inputs.items()
        return any(topic in topics and (sub in self.writers or len(topics) > 1) for sub, topics in read)

    def slice_of(self, sub_topology: int) -> Slice:
        """The latest slice."""
        return self.slices.get(sub_topology, _FIRST)

    def is_active(self) -> bool:
        """Whether writers read history."""
        return not all(slice_.is_open_ended for slice_ in self.slices.values())

    def report(self, task: TaskId, pace: Pace) -> None:
        """Note how far a writer is."""
        with self._lock:
            self._paces[task] = pace
        self.changed.set()

    def forget(self, task: TaskId) -> None:
        """A task is no longer open."""
        with self._lock:
            self._paces.pop(task, None)

    def paces(self, active: Collection[TaskId]) -> dict[str, Pace]:
        """How far the writers among these tasks are, by sub-topology, where it is known of all of them."""
        with self._lock:
            paces = dict(self._paces)
        slices = {}
        for sub in self.writers:
            tasks = [task for task in active if task.sub_topology == sub]
            if tasks and all(task in paces for task in tasks):
                slices[str(sub)] = slowest([paces[task] for task in tasks])
        return slices
