"""Runs a topology of any number of sub-topologies, one after the other, over input that is cut as the test says.

Each sub-topology gets its whole input before the next one begins. What it reads of several topics is interleaved in
the same way for every cutting, and commits come at the same records: so neither may show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import Task, TaskResources
from kstreams.processor.topology.nodes import SubTopology
from kstreams.processor.topology.topology import Topology
from kstreams.state import open_task_state
from tests.columns.both_paths import ALWAYS, NEVER, Seen, commit, listed

BLOCK = 5
"""So many rows of one topic come before those of the next."""

COMMIT_EVERY = 17


def run_staged(
    topology: Topology, rows: Mapping[str, Sequence[Row]], *, columns: bool, cuts: Sequence[int], caching: bool
) -> dict[int, Seen]:
    """What could be seen of every sub-topology, by its id."""
    topics, seen, global_stores = dict(rows), {}, {}
    for part in in_order(topology.sub_topologies):
        settings = {"application.id": "test", "columns.min.rows": ALWAYS if columns else NEVER}
        if not caching:
            settings["statestore.cache.max.bytes"] = 0
        found, state = Seen(), open_task_state(part.stores)
        application = Application.of(Config.of(settings), ManualClock())
        task = Task(part, 0, application, TaskResources(state, found, global_stores))
        _feed(task, state, found, topics, cuts)
        found.stores = {name: sorted(listed(kept)) for name, kept in state.snapshot().items()}
        found.metadata, found.dropped = task.metadata(), dict(task.dropped)
        if part.is_global:
            global_stores |= state.stores
        for topic, written in found.outputs.items():
            topics[topic] = [*topics.get(topic, ()), *(Row(key, value, at, ()) for key, value, at, _ in written)]
        seen[part.id] = found
    return seen


def in_order(parts: Sequence[SubTopology]) -> list[SubTopology]:
    """Global tables first, then those that write a topic before those that read it."""
    writers = {sink.topic: part.id for part in parts for sink in part.sinks if isinstance(sink.topic, str)}
    reads = {part.id: {topic for source in part.sources for topic in source.topics} for part in parts}
    before = {part.id: {writers[topic] for topic in reads[part.id] if topic in writers} for part in parts}
    by_id = {part.id: part for part in parts}
    order = [by_id[number] for number in TopologicalSorter(before).static_order()]
    return sorted(order, key=lambda part: not part.is_global)


def has_stages(topology: Topology) -> bool:
    """Whether no sub-topology waits for what comes out of it."""
    try:
        return bool(in_order(topology.sub_topologies))
    except CycleError:
        return False


def _feed(task: Task, state: Any, seen: Seen, topics: Mapping[str, Sequence[Row]], cuts: Sequence[int]) -> None:
    done = 0
    for batch in _batches(task.sub_topology, topics, cuts):
        task.process(task.stamp(batch))
        done += len(batch)
        if done % COMMIT_EVERY == 0:
            commit(task, state, seen)
    commit(task, state, seen)
    task.end_of_input()


def _batches(part: SubTopology, topics: Mapping[str, Sequence[Row]], cuts: Sequence[int]) -> Iterator[Batch]:
    read = sorted(topic for source in part.sources for topic in source.topics)
    places = sorted((at // BLOCK, topic, at) for topic in read for at in range(len(topics.get(topic, ()))))
    ends = {
        number for number in range(1, len(places)) if places[number][:2] != places[number - 1][:2] and len(read) > 1
    }
    ends |= {*range(0, len(places), COMMIT_EVERY), len(places), *(place % (len(places) + 1) for place in cuts)}
    for start, end in pairwise(sorted(ends | {0})):
        _, topic, first = places[start]
        rows = topics[topic][first : first + end - start]
        yield Batch.of_rows(TopicPartition(topic, 0), rows, first)
