"""`StoppedApplication`: exports the state of a stopped application into a bundle, and imports it from one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from kstreams.config import Config, MemoryShares
from kstreams.errors import CorruptStateError, StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.log.api import Admin, Delivery, Log, OffsetAndMetadata, Producer
from kstreams.log.readable_ends import readable_ends
from kstreams.processor.context.application import Application
from kstreams.processor.context.failures import check_dead_letter_topic, required_topics
from kstreams.processor.topology.bundle_check import require_fitting
from kstreams.processor.topology.fingerprint import encode_fingerprint, fingerprint_of
from kstreams.processor.topology.layout import Layout, TaskPlan, lay_out
from kstreams.processor.topology.topology import Topology, bound_while
from kstreams.runtime.native.state.deletions import forget
from kstreams.runtime.native.state.locks import lock_alone, state_folder
from kstreams.runtime.native.state.restore import StoreRestorer
from kstreams.runtime.native.state.task_metadata import (
    ENDED,
    Offsets,
    changelogs_of,
    committed_task_metadata,
    decode_changelog_ends,
    encode_changelog_ends,
    metadata_places,
    with_task_metadata,
)
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.runtime.native.topics import changelog_topic, internal_topics, prepare_topics
from kstreams.state import StateLimits, open_task_state
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.bundle import Bundle, Origin, TaskRows, by_topic, in_parts, write_bundle
from kstreams.state.task_state import as_records, observe_times, observed_times

logger = logging.getLogger(__name__)

_TRANSACTION_MS = 3_600_000


class StoppedApplication:
    """An application that does not run. It cannot be started before this object is closed.

    Parameters
    ----------
    topology : Topology
    config : Config

    Raises
    ------
    StateError
        If the application runs.
    """

    def __init__(self, topology: Topology, config: Config) -> None:
        self._config = config
        self._folder = state_folder(config)
        with ExitStack() as opening:
            opening.callback(lock_alone(config).release)
            self._topology = opening.enter_context(bound_while(topology, config))
            self._shape = fingerprint_of(self._topology)
            self._log: Log = opening.enter_context(home_of(config).open(config))
            self._admin: Admin = opening.enter_context(self._log.admin())
            self._resources = opening.pop_all()

    def __enter__(self) -> StoppedApplication:
        return self

    def __exit__(self, *exc: object) -> None:
        self._resources.close()

    def waiting(self) -> list[TopicPartition]:
        """Return the partitions with unprocessed records between the tasks of the application.

        Raises
        ------
        StateError
            If an operator also reads other topics that have unprocessed records.
        """
        layout = self._layout()
        if self._config.application_id not in self._admin.groups():
            return []
        within = _within(layout)
        behind = self._behind(layout)
        unread = [source for source in behind if source.topic in within]
        beside = [source for source in behind if source.topic not in within]
        meets = any(len(topics) > 1 and not within.isdisjoint(topics) for topics in layout.inputs.values())
        if unread and beside and meets:
            raise StateError(
                f"Records wait in {unread[0]} and in {beside[0]}, and their order may count: run it once with --once, "
                "then export."
            )
        return unread

    def _behind(self, layout: Layout) -> list[TopicPartition]:
        """Return the partitions with unprocessed records."""
        existing = self._admin.topics()
        inputs = [source for plan in layout.tasks for source in plan.inputs if source.topic in existing]
        committed = self._admin.committed(self._config.application_id, inputs)
        processed = {source: committed[source].offset if source in committed else 0 for source in inputs}
        ends = readable_ends(self._log, processed, self._admin.end_offsets(inputs))
        return [source for source, end in ends.items() if end > processed[source]]

    def write(self, folder: Path) -> Bundle:
        """Write the state into a folder.

        Raises
        ------
        StateError
            If there is no state, tasks have unprocessed records from other tasks, or the folder is not free.
        TopologyError
            If the state was written by another topology, and does not fit this one.
        """
        name = self._config.application_id
        if name not in self._admin.groups():
            raise StateError(f"The application {name!r} has processed nothing: there is no state.")
        if unread := self.waiting():
            raise StateError(f"Records still wait in {unread[0]}: run it once with --once, then export.")
        topology_file = TopologyFile(self._folder)
        topology_file.check(self._shape, name, self._admin)
        layout = prepare_topics(self._topology, self._config, self._admin)
        topology_file.accept(self._shape)
        committed = self._admin.committed(name, [at for plan in layout.tasks for at in metadata_places(plan, name)])
        own = set(layout.topic_names.values())
        own |= set(internal_topics(self._topology, name))
        offsets = {source: at.offset for source, at in committed.items() if source.topic not in own}
        ended = all(committed_task_metadata(plan, committed, name).get(ENDED) for plan in layout.tasks)
        origin = Origin(name, "native", encode_fingerprint(self._shape).decode(), by_topic(offsets), ended)
        return write_bundle(folder, origin, self._rows(layout, committed))

    def take(self, bundle: Bundle, *, replace: bool) -> None:
        """Import a bundle. It is checked before anything changes, and becomes visible in one transaction.

        Parameters
        ----------
        bundle : Bundle
        replace : bool
            Whether to delete the present state.

        Raises
        ------
        StateError
            If the application has state, or the bundle is damaged or of another kind.
        TopologyError
            If the bundle does not fit the topology.
        """
        require_fitting(bundle, self._topology, self._layout(), self._config.application_id, self._admin)
        if not replace:
            self._require_new()
        forget(self._topology, self._config, self._admin)
        layout = prepare_topics(self._topology, self._config, self._admin)
        settings = self._config.prefixed("producer.")
        # The id is that of the first thread: its start, as the next import, aborts an interrupted import.
        ours = {"transactional.id": f"{self._config.application_id}-1", "transaction.timeout.ms": _TRANSACTION_MS}
        with self._log.producer(settings | ours) as producer:
            producer.begin_transaction()
            offsets: dict[TopicPartition, OffsetAndMetadata] = {}
            for plan in layout.tasks:
                rows = bundle.rows(str(plan.id)) if str(plan.id) in bundle.tasks else TaskRows(str(plan.id), {}, {})
                offsets |= self._taken(plan, rows, bundle.origin, _within(layout), producer)
            producer.commit_transaction(offsets, self._config.application_id)
        TopologyFile(self._folder).accept(self._shape)

    def _layout(self) -> Layout:
        """Lay the topology out on the user's topics. Raises the errors of a start."""
        own = internal_topics(self._topology, self._config.application_id)
        described = self._admin.topics(required_topics(self._topology, self._config))
        topics = {name: topic.partitions for name, topic in described.items() if name not in own}
        check_dead_letter_topic(self._config, topics)
        return lay_out(self._topology, self._config.application_id, topics)

    def _require_new(self) -> None:
        name = self._config.application_id
        topics = self._admin.topics()
        own = [topics[topic] for topic in internal_topics(self._topology, name) if topic in topics]
        sources = [TopicPartition(topic.name, number) for topic in own for number in range(topic.partitions)]
        written = any(self._admin.end_offsets(sources, committed_only=False).values())
        if written or name in self._admin.groups() or any(entry.is_dir() for entry in self._folder.iterdir()):
            raise StateError(
                f"The application {name!r} has state already: import with --replace to forget it, or give the "
                "application another id."
            )

    def _taken(
        self, plan: TaskPlan, rows: TaskRows, origin: Origin, within: frozenset[str], producer: Producer
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Write the stores of a task. Return the offsets to commit for its inputs, with the metadata."""
        ends = {store.name: self._write(plan, store, rows, producer) for store in plan.sub_topology.stores}
        metadata = {**rows.metadata, ENDED: int(origin.ended), **encode_changelog_ends(_known(ends))}
        starts = self._admin.end_offsets([source for source in plan.inputs if source.topic in within])
        starts |= {source: offset for source, offset in origin.offsets.items() if source in plan.inputs}
        changelogs = changelogs_of(plan, self._config.application_id)
        return with_task_metadata(dict(sorted(starts.items())), metadata, changelogs, ends)

    def _write(self, plan: TaskPlan, store: StoreBuilder, rows: TaskRows, producer: Producer) -> int | None:
        """Write the rows of a store to its changelog and return its end offset, or write them to disk."""
        changes = rows.stores.get(store.name)
        if store.source_topic is not None:
            return None  # its input topic has the rows
        if store.logging:
            source = TopicPartition(changelog_topic(self._config.application_id, store.name), plan.partition)
            return 0 if changes is None else _appended(producer, store, source, changes)
        if changes is not None and store.store == "rocksdb":
            self._write_to_disk(plan, store, changes)
        elif changes is not None and len(changes):
            logger.warning(
                "task %s: %d rows of the store %s are left out: natively memory alone keeps it, which has no changelog",
                plan.id,
                len(changes),
                store.name,
            )
        return None

    def _write_to_disk(self, plan: TaskPlan, store: StoreBuilder, changes: Changes) -> None:
        """Write a store without a changelog. Its folder is moved into place after the transaction."""
        stores = [builder for builder in plan.sub_topology.stores if builder.store == "rocksdb"]
        state = open_task_state(stores, TopologyFile(self._folder).waiting(str(plan.id)))
        for part in in_parts(changes):
            state.restore_changes(store.name, part, len(part))
        state.close()

    def _rows(self, layout: Layout, committed: Offsets) -> Iterator[TaskRows]:
        application = Application.of(self._config, SystemClock(), layout.topic_names)
        with self._log.consumer() as consumer:
            restorer = StoreRestorer(application, consumer, self._admin, lambda progress: None, lambda: False)
            for plan in layout.tasks:
                try:
                    yield self._read(plan, restorer, committed)
                except CorruptStateError as damage:
                    raise StateError(
                        f"{damage}: run it once with --once, which restores them, then export."
                    ) from damage

    def _read(self, plan: TaskPlan, restorer: StoreRestorer, committed: Offsets) -> TaskRows:
        limits = StateLimits.of(MemoryShares.of(self._config))
        caching = restorer.application.settings.caching
        stores = plan.sub_topology.stores
        folder = self._folder / str(plan.id)
        state = open_task_state(stores, folder, limits=limits, caching=caching)
        try:
            restorer.restore(plan, state, committed)
            metadata = _without_changelogs(committed_task_metadata(plan, committed, self._config.application_id))
            observe_times(state, metadata)
            return TaskRows(str(plan.id), metadata | observed_times(state), state.snapshot())
        finally:
            state.close()


def _within(layout: Layout) -> frozenset[str]:
    """Return the real names of the topics between the tasks of an application."""
    return layout.through.union(layout.topic_names.values())


def _known(ends: Mapping[str, int | None]) -> dict[str, int]:
    return {store: end for store, end in ends.items() if end is not None}


def _without_changelogs(metadata: Mapping[str, int]) -> dict[str, int]:
    ends = encode_changelog_ends(decode_changelog_ends(metadata))
    return {name: value for name, value in metadata.items() if name not in ends and name != ENDED}


def _appended(producer: Producer, store: StoreBuilder, source: TopicPartition, changes: Changes) -> int:
    """Write the rows of a changelog. Return its end offset."""
    ends = [0]

    def delivered(delivery: Delivery) -> None:
        ends.append(delivery.offset + delivery.count)

    for part in in_parts(changes):
        producer.send_batch(as_records(store, source, part), delivered)
    producer.flush()
    return max(ends)
