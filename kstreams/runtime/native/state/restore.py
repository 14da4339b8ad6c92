"""`StoreRestorer`: restores the stores of a task from their changelogs, from the offset of the disk on.

`check_changelog` checks that a changelog has lost no records. If the changelog is an input topic, `RestoreDeserializer`
returns its records as the source had read them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.kernel.timestamps import FailOnInvalidTimestamp, are_valid, extracted, extractor_of
from kstreams.log.api import Admin, Consumer
from kstreams.processor.context.application import Application
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.nodes import SourceNode
from kstreams.record import Record
from kstreams.runtime.native.state.task_metadata import Offsets, committed_task_metadata, decode_changelog_ends
from kstreams.runtime.native.topics import changelog_topic
from kstreams.serdes import BytesSerde
from kstreams.serdes.base import failing_rows
from kstreams.serdes.registry import same_bytes_when_equal
from kstreams.state.api import StoreBuilder, TaskState

logger = logging.getLogger(__name__)

_PREFIX = "changelog:"


class Changelog(NamedTuple):
    """The changelog of one store of a task.

    Parameters
    ----------
    store : str
    source : TopicPartition
    local_offset : int or None
        The offset up to which the store on disk has the changelog. None if it has nothing.
    written : int
        The end offset at the last commit. 0 if there was none.
    """

    store: str
    source: TopicPartition
    local_offset: int | None
    written: int


def check_changelog(changelog: Changelog, admin: Admin) -> None:
    """Raise StateError if records of a changelog are missing, before a store is restored from it.

    Each commit writes the end offsets of changelogs to the task metadata. A store that never wrote a record has no such
    offset, or 0, and its changelog may be empty. A changelog that ends before its offset has lost records.

    Compaction never moves the beginning of a changelog. If it begins after the offset of the store, records were
    deleted. Retention moves the beginning of changelogs of windows, and deletes expired rows only.

    Raises
    ------
    StateError
        If records are missing on which the store or the committed offsets depend. The message says what to do.
    """
    source = changelog.source
    last_offset = changelog.local_offset or 0
    begin = admin.beginning_offsets([source])[source]
    end = admin.end_offsets([source])[source]
    written = max(last_offset, changelog.written)
    if end < written:
        raise _lost(changelog, f"ends at offset {end}, but was written up to {written}")
    if begin > last_offset and admin.describe_topic(source.topic).config["cleanup.policy"] == "compact":
        raise _lost(changelog, f"begins at offset {begin}, but is never cut at its beginning")


def _lost(changelog: Changelog, reason: str) -> StateError:
    return StateError(
        f"The changelog {changelog.source} of the store {changelog.store} {reason}: it was deleted, emptied or belongs "
        "to another log, and the store cannot be made whole. Put the topic back from a copy of the log, or run once "
        "with --reset to process the input again from its beginning."
    )


class RestoreDeserializer:
    """The records of a topic as a source had read them before.

    The source dropped records that do not decode, else the application would have failed: they are dropped again.

    Parameters
    ----------
    source : SourceNode
    default_extractor
        `default.timestamp.extractor`, for a source without an extractor.
    clock : Clock
    """

    def __init__(self, source: SourceNode, default_extractor: object, clock: Clock) -> None:
        default = extractor_of(default_extractor)
        self._extract = source.timestamp_extractor or default or FailOnInvalidTimestamp()
        self._key = source.key or BytesSerde()
        self._value = source.value or BytesSerde()
        self._clock = clock
        self._partition_time = -1

    def __call__(self, batch: Batch) -> Batch:
        """Return the records that decode and have a key, with event times, and with keys as their serde writes them.

        Other programs may write the same key in other bytes, such as JSON with spaces, and stores compare bytes.
        """
        batch = batch.filter(self._is_good(batch))
        batch.keys = self._key.framed(batch.keys, batch.headers)
        batch.values = self._value.framed(batch.values, batch.headers)  # the store has bytes and no headers
        if not same_bytes_when_equal(self._key):
            batch.keys = self._key.encode_rows(self._key.decode_rows(batch.keys))
        times = self._times(batch)
        batch.timestamps = pa.array(times, pa.int64())
        batch = batch.filter(are_valid(times))
        if len(batch):
            self._partition_time = max(self._partition_time, int(batch.timestamps.to_numpy().max()))
        return batch

    def _is_good(self, batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        good: np.ndarray[tuple[int], np.dtype[np.bool_]] = batch.keys.is_valid().to_numpy(zero_copy_only=False)
        for column, serde in ((batch.keys, self._key), (batch.values, self._value)):
            for row, _ in failing_rows(serde.decode_rows, serde.framed(column, batch.headers)):
                good[row] = False
        return good

    def _times(self, batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        timestamps = batch.timestamps.to_numpy()
        if isinstance(self._extract, FailOnInvalidTimestamp):
            # An extractor that fell back to the partition time had one, possibly from records that are not read again.
            return self._extract.times(timestamps, max(self._partition_time, 0), self._clock)
        rows = zip(self._key.decode_rows(batch.keys), self._value.decode_rows(batch.values), timestamps, strict=True)
        records = (
            Record(key=key, value=value, timestamp=int(time), headers=headers)
            for (key, value, time), headers in zip(rows, batch.header_rows(), strict=True)
        )
        times = extracted(self._extract, records, self._partition_time)
        return np.array([-1 if isinstance(time, Exception) else time for time in times], dtype=np.int64)


_POLL_S = 0.05  # a changelog often ends with transaction markers, after which no record comes
_POLL_ROWS = 500_000  # large batches, because the store sorts each and ingests it into RocksDB as one file


class RestoreProgress(NamedTuple):
    """The progress of the restore of one store.

    `restored` and `total` are changelog offsets, counted from the first offset of the restore.
    """

    task: str
    store: str
    restored: int
    total: int


OnRestore = Callable[[RestoreProgress], None]
Accepted = Callable[[Batch], Batch]


@dataclass(frozen=True)
class StoreRestorer:
    """Restores the stores of tasks. Kafka Streams: `StoreChangelogReader`.

    Parameters
    ----------
    application : Application
    consumer : Consumer
        Reads the topics. Its assignment is changed.
    admin : Admin
    on_restore : callable
        Called after every batch, and at the start and the end of the restore of each store.
    is_stopping : callable
        Called between batches. The next restore continues an interrupted one.
    """

    application: Application
    consumer: Consumer
    admin: Admin
    on_restore: OnRestore
    is_stopping: Callable[[], bool]

    def restore(
        self, plan: TaskPlan, state: TaskState, committed: Offsets, read_to: Mapping[TopicPartition, int] | None = None
    ) -> dict[str, int]:
        """Restore the stores of one task from their changelogs, or from input topics that serve as changelogs.

        Parameters
        ----------
        plan : TaskPlan
        state : TaskState
            The open stores.
        committed : mapping
            The committed offsets. A store of an input topic is restored up to the committed offset of the topic.
        read_to : mapping of TopicPartition to int, optional
            The offsets up to which changelogs have been read, after transaction markers, which stores do not have.

        Returns
        -------
        dict of str to int
            The end offsets of the changelogs of logged stores.

        Raises
        ------
        StateError
            If a changelog has lost records on which the store or the committed offsets depend.
        """
        stores = plan.sub_topology.stores
        changelogs = {store.name: changelog_of(store, plan, self.application.id) for store in stores}
        sources = {store: source for store, source in changelogs.items() if source is not None}
        begins, ends = self._begins_and_ends(plan, list(sources.values()), committed)
        logged = {store.name for store in stores if store.logging and store.name in sources}
        written = decode_changelog_ends(committed_task_metadata(plan, committed, self.application.id))
        for store in logged:
            local_offset = state.changelog_offset(store)
            check_changelog(Changelog(store, sources[store], local_offset, written.get(store, 0)), self.admin)
        for store, source in sources.items():
            restored_offset = max(state.changelog_offset(store) or 0, (read_to or {}).get(source, 0))
            start = max(begins[source], restored_offset)
            end = ends[source]
            if start < end and not self.is_stopping():
                self._restore_store(plan, state, store, source, (start, end))
        return {store: ends[sources[store]] for store in logged}

    def _begins_and_ends(
        self, plan: TaskPlan, sources: list[TopicPartition], committed: Offsets
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the first and the end offsets of the sources. Inputs end at the committed offset."""
        begins = self.admin.beginning_offsets(sources)
        ends = self.admin.end_offsets(sources)
        inputs = [source for source in sources if source in plan.inputs]
        processed = {source: committed[source].offset if source in committed else begins[source] for source in inputs}
        return begins, {**ends, **processed}

    def _restore_store(
        self, plan: TaskPlan, state: TaskState, store: str, source: TopicPartition, offsets: tuple[int, int]
    ) -> None:
        """Apply the records of a changelog in the range `offsets`, whose end is not included."""
        start, end = offsets
        task = str(plan.id)
        total = end - start
        consumer = self.consumer
        accepted = self.accepted(plan, source)
        logger.info("task %s: restoring %s from %s, %d offsets", task, store, source, total)
        consumer.assign([source])
        consumer.seek(source, start)
        self.on_restore(RestoreProgress(task, store, 0, total))
        while (position := consumer.position(source)) < end and not self.is_stopping():
            for batch in consumer.poll(_POLL_S, min(_POLL_ROWS, end - position)):
                state.restore(store, accepted(batch))
            if consumer.position(source) > position:
                self.on_restore(RestoreProgress(task, store, min(consumer.position(source), end) - start, total))
        consumer.assign([])
        logger.info("task %s: restored %s", task, store)

    def accepted(self, plan: TaskPlan, topic: TopicPartition) -> Accepted:
        """Return the filter of a store's records: all of a changelog, or those that the source of an input reads."""
        reader = next((source for source in plan.sub_topology.sources if topic.topic in source.topics), None)
        if reader is None:
            return lambda batch: batch
        return RestoreDeserializer(reader, self.application.settings.timestamp_extractor, self.application.clock)


def changelog_of(store: StoreBuilder, plan: TaskPlan, application_id: str) -> TopicPartition | None:
    """Return the partition from which a store is restored, or None if it has no changelog."""
    if store.source_topic is not None:
        source = TopicPartition(store.source_topic, plan.partition)
        return source if source in plan.inputs else None
    return TopicPartition(changelog_topic(application_id, store.name), plan.partition) if store.logging else None
