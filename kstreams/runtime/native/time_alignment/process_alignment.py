"""`ProcessAlignment`: the slices of event time that the writers of repartition topics in this process follow.

While one of the writers reads history, all of them process the same slice of event time. Otherwise one task could read
a whole year before another begins, and the tasks behind the repartition topic would drop all records of the other as
late. The writers may be in several threads and processes. All of them write their part of a slice, and make it visible,
before one begins the next slice (`next_slice`). Each row carries the slice, its writer and the stream time of the
writer (`row_tags.py`), by which readers sort the rows of a slice (`SliceBuffer`). When all writers have been at the end
of their input, no writer waits for another, and rows carry no tag.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

import msgspec

from kstreams.processor.topology.layout import Layout
from kstreams.processor.topology.record_order import RecordOrder
from kstreams.processor.topology.sub_topologies import TaskId

EVERYTHING_MS = 2**63 - 1


class Slice(msgspec.Struct, frozen=True):
    """A slice of event time: the writers of a repartition topic process all of it before one of them goes further.

    Parameters
    ----------
    number : int
        The number of the slice. If two slices of one sub-topology have the same number, the first in the topic counts.
    time_ms, partition : int
        The end. Writers up to this partition process the records up to this stream time, and writers of later
        partitions the records before this stream time.
    is_open_ended : bool
        True if no writer waits for another, because all have been at the end of their input.
    """

    number: int = 0
    time_ms: int = EVERYTHING_MS
    partition: int = 0
    is_open_ended: bool = True

    def until_ms(self, partition: int) -> int:
        """Return the last stream time that the writer of a partition processes."""
        return self.time_ms if partition <= self.partition or self.is_open_ended else self.time_ms - 1


class Pace(msgspec.Struct, frozen=True):
    """How far writers of a repartition topic are.

    Parameters
    ----------
    done : int
        The slice whose records all of the writers have written, visibly for readers.
    time_ms, partition : int
        The end that these writers propose for the next slice.
    has_caught_up : bool
        True if all of the writers have been at the end of their input since they were opened.
    """

    done: int
    time_ms: int
    partition: int
    has_caught_up: bool


def slowest(paces: Collection[Pace]) -> Pace:
    """Return the pace of several writers together; at least one.

    Examples
    --------
    >>> slowest([Pace(4, 900, 0, True), Pace(5, 700, 1, False)])
    Pace(done=4, time_ms=700, partition=1, has_caught_up=False)
    """
    time_ms, partition = min((pace.time_ms, pace.partition) for pace in paces)
    return Pace(min(pace.done for pace in paces), time_ms, partition, all(pace.has_caught_up for pace in paces))


def next_slice(latest: Slice, pace: Pace | None, num_writers: int) -> Slice | None:
    """Return the next slice of a sub-topology, or None if a writer is in the latest one, or no writer reads history.

    Parameters
    ----------
    latest : Slice
    pace : Pace or None
        The pace of all writers together. None while the pace of one of them is not known.
    num_writers : int
        The number of tasks of the sub-topology.

    Examples
    --------
    >>> next_slice(Slice(3, 400, 0, False), Pace(3, 500, 0, False), 2)
    Slice(number=4, time_ms=500, partition=0, is_open_ended=False)
    >>> next_slice(Slice(4, 500, 0, False), Pace(3, 500, 0, False), 2)

    When all writers have caught up, none waits for another any more:

    >>> next_slice(Slice(4, 500, 0, False), Pace(4, 950, 0, True), 2).is_open_ended
    True
    """
    if num_writers < 2 or pace is None or is_settled(latest, pace) or pace.done < latest.number:
        return None
    if pace.has_caught_up:
        return Slice(latest.number + 1)
    return Slice(latest.number + 1, pace.time_ms, pace.partition, is_open_ended=False)


def is_settled(latest: Slice, pace: Pace | None) -> bool:
    """Return whether no writer of a sub-topology reads history."""
    return latest.is_open_ended and pace is not None and pace.has_caught_up


_FIRST = Slice()


class ProcessAlignment:
    """The slices of all sub-topologies that write repartition topics. All threads of a process share it.

    Parameters
    ----------
    layout : Layout
    sub_topologies : collection of int
        The sub-topologies that write repartition topics. A single task waits for no other, but its readers have history
        to read as long as it has.
    is_shared : bool
        True if the writers may be in several threads, so that readers sort the rows.

    Attributes
    ----------
    writers : dict of int to list of TaskId
        The tasks of each sub-topology.
    topics : dict of str to int
        The sub-topology that writes an internal topic.
    order : RecordOrder
        In a bounded run, the topics whose rows carry ranks. None do otherwise.
    timed : frozenset of str
        In a bounded run, the internal topics whose rows carry the stream time of their writer (`Batch.written_at`):
        their readers write to such a topic themselves, or read another topic too.
    changed : Event
        Set when the pace of a writer has changed.
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
        written: dict[int, list[str]] = {}
        for topic, sub in self.topics.items():
            written.setdefault(sub, []).append(topic)
        self.order = RecordOrder.of(layout.inputs, written, () if is_shared else self.topics)
        timed = (topic for topic in self.topics if not is_shared and self._is_read_with_others(topic, layout))
        self.timed = frozenset(timed)
        self.changed = threading.Event()
        self._slices: Mapping[int, Slice] = {}
        self._settled: Collection[int] = ()
        self._lock = threading.Lock()
        self._paces: dict[TaskId, Pace] = {}

    def _is_read_with_others(self, topic: str, layout: Layout) -> bool:
        """Return whether readers of a topic write repartition topics, or read another topic too."""
        read = layout.inputs.items()
        return any(topic in topics and (sub in self.writers or len(topics) > 1) for sub, topics in read)

    def slice_of(self, sub_topology: int) -> Slice:
        """Return the latest slice of a sub-topology."""
        return self._slices.get(sub_topology, _FIRST)

    def slice_of_topic(self, topic: str) -> Slice:
        """Return the latest slice of the sub-topology that writes a topic, open-ended for all other topics."""
        return self.slice_of(self.topics[topic]) if topic in self.topics else _FIRST

    def is_settled(self, sub_topology: int) -> bool:
        """Return whether no writer of a sub-topology reads history, in any process."""
        return sub_topology in self._settled

    def is_active(self) -> bool:
        """Return whether writers read history."""
        return not all(slice_.is_open_ended for slice_ in self._slices.values())

    def follow(self, slices: Mapping[int, Slice], paces: Mapping[int, Pace | None]) -> None:
        """Follow the latest slices of the group.

        Parameters
        ----------
        slices : mapping of int to Slice
            The latest slice of each sub-topology.
        paces : mapping of int to Pace or None
            The pace of all writers of each sub-topology together, in all processes. None if it is not known.
        """
        self._slices = slices
        self._settled = {sub for sub in self.writers if is_settled(slices.get(sub, _FIRST), paces[sub])}

    def next_slices(self, slices: Mapping[int, Slice], paces: Mapping[int, Pace | None]) -> dict[int, Slice]:
        """Return the slices that begin now, because all writers are at the end of the latest ones. See `follow`."""
        new = {sub: next_slice(slices.get(sub, _FIRST), paces[sub], len(tasks)) for sub, tasks in self.writers.items()}
        return {sub: slice_ for sub, slice_ in new.items() if slice_ is not None}

    def report(self, task: TaskId, pace: Pace) -> None:
        """Note the pace of a writer."""
        with self._lock:
            self._paces[task] = pace
        self.changed.set()

    def forget(self, task: TaskId) -> None:
        """Note that a task is closed."""
        with self._lock:
            self._paces.pop(task, None)

    def paces(self, active: Collection[TaskId]) -> dict[str, Pace]:
        """Return the pace of these tasks by sub-topology, without sub-topologies in which a pace is not known."""
        with self._lock:
            paces = dict(self._paces)
        paces_by_sub = {}
        for sub in self.writers:
            tasks = [task for task in active if task.sub_topology == sub]
            if tasks and all(task in paces for task in tasks):
                paces_by_sub[str(sub)] = slowest([paces[task] for task in tasks])
        return paces_by_sub
