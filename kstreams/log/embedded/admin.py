"""`EmbeddedAdmin`: topics of the embedded log, their offsets, and consumer groups."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from kstreams.errors import ConfigError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import (
    GroupDescription,
    GroupMetadata,
    MemberDescription,
    OffsetAndMetadata,
    TopicDescription,
)
from kstreams.log.embedded.catalogue.catalogue import (
    Topic,
    commit_offsets,
    committed_offsets,
    delete_group_rows,
    delete_topic,
    group_names,
    grow_topic,
    insert_topic,
    read_group,
    read_quotas,
    store_quotas,
    update_config,
)
from kstreams.log.embedded.catalogue.rows import MOST_PARTITIONS
from kstreams.log.embedded.catalogue.transactions import TransactionState, transaction_state
from kstreams.log.embedded.groups.coordinator import GroupCoordinator
from kstreams.log.embedded.resources import LogResources, stable_end
from kstreams.log.embedded.segments.partition import Partition, create_partition
from kstreams.log.embedded.segments.reader import PartitionReader
from kstreams.log.embedded.segments.topic_settings import full_config
from kstreams.log.embedded.upkeep.housekeeping import move_start
from kstreams.log.groups.group import GroupState
from kstreams.log.groups.transitions import Leave
from kstreams.log.naming import check_client_id, check_topic_name, checked_quota


class EmbeddedAdmin:
    """See `kstreams.log.api.Admin`."""

    def __init__(self, home: LogResources) -> None:
        self._home = home
        self._catalogue = home.catalogue

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic; raises TopicExistsError, or ConfigError for an illegal name or setting."""
        _check_number(partitions)
        settings = full_config(config)
        with insert_topic(self._catalogue, check_topic_name(name), partitions, settings) as topic:
            self._create_partitions(topic, range(partitions))

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic, None to restore a default; ConfigError for an illegal setting."""
        with self._catalogue.write() as database:
            topic = self._catalogue.topic(name)
            settings = {key: value for key, value in {**topic.config, **config}.items() if value is not None}
            update_config(database, topic, full_config(settings))

    def add_partitions(self, name: str, total: int) -> None:
        """Give a topic `total` partitions; ConfigError unless it has fewer."""
        with grow_topic(self._catalogue, name, total) as topic:
            _check_number(total)
            self._create_partitions(topic, range(topic.partitions, total))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records and committed offsets."""
        topic = self._catalogue.topic(name)
        delete_topic(self._catalogue, topic)
        folder = self._home.topic_folder(topic)
        for number in range(topic.partitions):
            _mark_deleted(self._home, topic, number)
        shutil.rmtree(folder, ignore_errors=True)

    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """Return all topics by name."""
        return {name: topic.describe() for name, topic in self._catalogue.topics().items()}

    def describe_topic(self, name: str) -> TopicDescription:
        """Return the topic's partitions and all its settings; UnknownTopicError names the nearest topic."""
        return self._catalogue.topic(name).describe()

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        offsets = {}
        for source in partitions:
            with self._opened(source) as (_, partition):
                offsets[source] = partition.head().start_offset
        return offsets

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the end offsets; with `committed_only`, at most the offset of the first open transaction."""
        offsets = {}
        for source in partitions:
            with self._opened(source) as (topic, partition):
                end = partition.head().end_offset
                offsets[source] = stable_end(self._home, topic, source.partition, end) if committed_only else end
        return offsets

    def offsets_at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the first offset at or after a time (ms) in each partition; the end if there is none."""
        offsets = self.end_offsets(list(times))
        for source, time_ms in times.items():
            with self._opened(source) as (_, partition):
                offset = PartitionReader(partition, self._transaction_state).offset_at_time(time_ms)
            offsets[source] = offsets[source] if offset is None else min(offset, offsets[source])
        return offsets

    def _transaction_state(self, transaction: int) -> TransactionState:
        return transaction_state(self._catalogue, transaction, self._home.clock.uptime_ms())

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets; LogError for an offset after the end."""
        for source, offset in before.items():
            with self._opened(source) as (_, partition):
                move_start(partition, offset)

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without an offset are left out."""
        return committed_offsets(self._catalogue, group, partitions)

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit all of these offsets as one; CommitFailedError while the group has members."""
        self._remove_dead_members(group)
        commit_offsets(self._catalogue, GroupMetadata(group), offsets)

    def groups(self) -> list[str]:
        """Return the names of groups that have or had members or committed offsets."""
        return group_names(self._catalogue)

    def delete_group(self, group: str) -> None:
        """Delete a group and its offsets; LogError while it has members."""
        self._remove_dead_members(group)
        delete_group_rows(self._catalogue, group)

    def remove_member(self, group: str, member: str) -> None:
        """Remove a member whose process has ended; nothing happens if the group has no such member."""
        GroupCoordinator(self._home, group).apply(Leave(member, "it was removed"))

    def describe_group(self, group: str) -> GroupDescription:
        """Return the group's state, generation and members."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """Return the states, generations and members of several groups."""
        for group in groups:
            self._remove_dead_members(group)
        existing = set(self.groups())
        return {group: self._description(group, exists=group in existing) for group in groups}

    def client_quotas(self) -> dict[str | None, dict[str, float]]:
        """Return the quotas by client id; None is the default."""
        return {client_id or None: quotas for client_id, quotas in read_quotas(self._catalogue).items()}

    def alter_client_quotas(self, client_id: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set quotas of a client id, or of the default; None removes one. Clients follow within a second."""
        check_client_id(client_id)
        checked = {name: checked_quota(name, rate) for name, rate in quotas.items()}
        store_quotas(self._catalogue, client_id or "", checked)

    def close(self) -> None:
        """Do nothing: the catalogue belongs to the log."""

    def __enter__(self) -> EmbeddedAdmin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _description(self, name: str, *, exists: bool) -> GroupDescription:
        group = read_group(self._catalogue, name)
        state = group.state if exists else GroupState.DEAD
        members = tuple(
            MemberDescription(member.id, member.instance, member.assignment) for member in group.members.values()
        )
        return GroupDescription(name, state.value, group.generation, group.strategy, members)

    def _create_partitions(self, topic: Topic, numbers: range) -> None:
        """Create the folders of new partitions; replaces those of a process that died while it created them."""
        folder = self._home.topic_folder(topic)
        for number in numbers:
            shutil.rmtree(folder / str(number), ignore_errors=True)
            create_partition(folder / str(number), self._home.disk)
        if self._home.durability == "fsync":
            self._home.disk.sync_folder(folder)
            self._home.disk.sync_folder(folder.parent)

    def _remove_dead_members(self, group: str) -> None:
        """Remove members whose process has ended, in case no other member is left to do it."""
        if read_group(self._catalogue, group).members:
            GroupCoordinator(self._home, group).remove_dead(observer="")

    @contextmanager
    def _opened(self, source: TopicPartition) -> Iterator[tuple[Topic, Partition]]:
        topic = self._catalogue.topic(source.topic)
        partition = self._home.partition(topic, source.partition)
        try:
            yield topic, partition
        finally:
            partition.close()


def _check_number(partitions: int) -> None:
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise ConfigError(f"A topic has 1 to {MOST_PARTITIONS} partitions, not {partitions}.")


def _mark_deleted(home: LogResources, topic: Topic, number: int) -> None:
    # Appenders that wait for the lock see the deletion by its missing file.
    try:
        partition = home.partition(topic, number)
    except UnknownTopicError:
        return
    with partition.locked():
        (partition.folder / "lock").unlink()
        (partition.folder / "head").unlink()
    partition.close()
