"""Restores the stores of a task from their changelogs: only what the disk does not hold yet."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from kstreams.batch import Batch, TopicPartition
from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.log.api import Admin, Consumer
from kstreams.processor.task.restore_deserializer import RestoreDeserializer
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.state.changelog_check import Changelog, check_changelog, decode_changelog_ends
from kstreams.runtime.native.state.task_metadata import Offsets, committed_task_metadata
from kstreams.runtime.native.topics import changelog_topic
from kstreams.state.api import StoreBuilder, TaskState

logger = logging.getLogger(__name__)

_POLL_S = 1.0
_POLL_ROWS = 500_000  # big batches: the store sorts each and hands it to RocksDB as one file


class RestoreProgress(NamedTuple):
    """How far the restore of one store has come.

    `restored` and `total` are offsets of the changelog counted from where the restore began.
    """

    task: str
    store: str
    restored: int
    total: int


OnRestore = Callable[[RestoreProgress], None]


def restore_task(
    plan: TaskPlan,
    state: TaskState,
    config: Config,
    clock: Clock,
    committed: Offsets,
    consumer: Consumer,
    admin: Admin,
    on_restore: OnRestore,
    stopping: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """Restore the stores of one task, from their changelogs or from the topics that they keep.

    Parameters
    ----------
    plan : TaskPlan
    state : TaskState
        Its open stores.
    config : Config
    clock : Clock
    committed : mapping
        How far the task's input was processed: a store that keeps an input topic is restored up to there.
    consumer : Consumer
        Reads the topics; its assignment is changed.
    admin : Admin
    on_restore : callable
        Called after every batch, and once at the start and at the end of each store that lacks something.
    stopping : callable
        Called between batches; an interrupted restore is continued the next time.

    Returns
    -------
    dict of str to int
        Where the changelogs of logged stores end.

    Raises
    ------
    StateError
        When a changelog has lost records that the store or the committed offsets stand for.
    """
    found = {store.name: changelog_of(store, plan, config.application_id) for store in plan.sub_topology.stores}
    sources = {store: source for store, source in found.items() if source is not None}
    begins, ends = admin.beginning_offsets(list(sources.values())), admin.end_offsets(list(sources.values()))
    ends |= {
        source: committed[source].offset if source in committed else begins[source]
        for source in sources.values()
        if source in plan.inputs
    }
    logged = {store.name for store in plan.sub_topology.stores if store.logging and store.name in sources}
    written = decode_changelog_ends(committed_task_metadata(plan, committed))
    for store in logged:
        check_changelog(Changelog(store, sources[store], state.changelog_offset(store), written.get(store, 0)), admin)
    starts = {store: max(begins[source], state.changelog_offset(store) or 0) for store, source in sources.items()}
    for store, source in sources.items():
        if starts[store] < ends[source] and not stopping():
            offsets, take = (starts[store], ends[source]), _taken(plan, source, config, clock)
            restore_store(plan, state, store, source, offsets, take, consumer, on_restore, stopping)
    return {store: ends[sources[store]] for store in logged}


def changelog_of(store: StoreBuilder, plan: TaskPlan, application_id: str) -> TopicPartition | None:
    """What a store is restored from; None when it has no changelog."""
    if store.source_topic is not None:
        source = TopicPartition(store.source_topic, plan.partition)
        return source if source in plan.inputs else None
    return TopicPartition(changelog_topic(application_id, store.name), plan.partition) if store.logging else None


def restore_store(
    plan: TaskPlan,
    state: TaskState,
    store: str,
    source: TopicPartition,
    offsets: tuple[int, int],
    take: Callable[[Batch], Batch],
    consumer: Consumer,
    on_restore: OnRestore,
    stopping: Callable[[], bool],
) -> None:
    """Apply what `take` gives of a changelog, in the range `offsets`, whose end is not included."""
    start, end = offsets
    task, total = str(plan.id), end - start
    logger.info("task %s: restoring %s from %s, %d offsets", task, store, source, total)
    consumer.assign([source])
    consumer.seek(source, start)
    on_restore(RestoreProgress(task, store, 0, total))
    while (position := consumer.position(source)) < end and not stopping():
        for batch in consumer.poll(_POLL_S, min(_POLL_ROWS, end - position)):
            state.restore(store, take(batch))
        on_restore(RestoreProgress(task, store, min(consumer.position(source), end) - start, total))
    consumer.assign([])
    logger.info("task %s: restored %s", task, store)


def _taken(plan: TaskPlan, topic: TopicPartition, config: Config, clock: Clock) -> Callable[[Batch], Batch]:
    """What a store takes of the topic it is restored from: of its changelog all, of an input what its source took."""
    reader = next((source for source in plan.sub_topology.sources if topic.topic in source.topics), None)
    return (
        (lambda batch: batch)
        if reader is None
        else RestoreDeserializer(reader, config["default.timestamp.extractor"], clock)
    )
