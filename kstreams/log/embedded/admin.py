"""The embedded log's Admin: topics, their offsets, and what groups committed."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from kstreams.errors import ConfigError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupDescription, GroupMetadata, MemberDescription, OffsetAndMetadata, TopicDescription
from kstreams.log.embedded.catalogue import group_rows
from kstreams.log.embedded.catalogue.catalogue import Topic, delete_topic, grow_topic, insert_topic, update_config
from kstreams.log.embedded.catalogue.group_rows import delete_group_rows, group_names, read_group
from kstreams.log.embedded.catalogue.rows import MOST_PARTITIONS
from kstreams.log.embedded.groups.coordinator import GroupCoordinator
from kstreams.log.embedded.resources import LogResources, stable_end
from kstreams.log.embedded.segments.partition import Partition, create_partition
from kstreams.log.embedded.segments.topic_settings import full_config
from kstreams.log.embedded.upkeep.retention import move_start
from kstreams.log.groups.group import GroupState
from kstreams.log.naming import check_topic_name


class EmbeddedAdmin:
    """See `kstreams.log.api.Admin`."""

    def __init__(self, home: LogResources) -> None:
        self._home = home
        self._catalogue = home.catalogue

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic; raises TopicExistsError, or ConfigError for a name or setting that cannot be."""
        _check_number(partitions)
        settings = full_config(config)
        with insert_topic(self._catalogue, check_topic_name(name), partitions, settings) as topic:
            self._make(topic, range(partitions))

    def alter_topic(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change some settings of a topic, None to take one back; ConfigError for one that cannot be."""
        with self._catalogue.write() as database:
            topic = self._catalogue.topic(name)
            wanted = {key: value for key, value in {**topic.config, **config}.items() if value is not None}
            update_config(database, topic, full_config(wanted))

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have so many partitions; ConfigError unless these are more than it has."""
        with grow_topic(self._catalogue, name, total) as topic:
            _check_number(total)
            self._make(topic, range(topic.partitions, total))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records and the offsets that groups committed for it."""
        topic = self._catalogue.topic(name)
        delete_topic(self._catalogue, topic)
        folder = self._home.topic_folder(topic)
        for number in range(topic.partitions):
            _mark_deleted(self._home, topic, number)
        shutil.rmtree(folder, ignore_errors=True)

    def topics(self, awaited: Collection[str] = ()) -> dict[str, TopicDescription]:
        """All topics by name."""
        return {name: topic.describe() for name, topic in self._catalogue.topics().items()}

    def describe_topic(self, name: str) -> TopicDescription:
        """The topic's partitions and full configuration; UnknownTopicError names the nearest topic."""
        return self._catalogue.topic(name).describe()

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset of each partition that is still there."""
        found = {}
        for source in partitions:
            with self._opened(source) as (_, partition):
                found[source] = partition.head().start_offset
        return found

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Offset after the last record; with `committed_only`, at most that of the first open transaction."""
        found = {}
        for source in partitions:
            with self._opened(source) as (topic, partition):
                end = partition.head().end_offset
                found[source] = stable_end(self._home, topic, source.partition, end) if committed_only else end
        return found

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Let the records before these offsets go; LogError for an offset after the end."""
        for source, offset in before.items():
            with self._opened(source) as (_, partition):
                move_start(partition, offset)

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are left out."""
        return group_rows.committed_offsets(self._catalogue, group, partitions)

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit all of these offsets as one; CommitFailedError while the group has members."""
        self._remove_dead_members(group)
        group_rows.commit_offsets(self._catalogue, GroupMetadata(group), offsets)

    def groups(self) -> list[str]:
        """Names of the groups that have or had members, or committed offsets."""
        return group_names(self._catalogue)

    def delete_group(self, group: str) -> None:
        """Forget a group and its offsets; LogError while it has members."""
        self._remove_dead_members(group)
        delete_group_rows(self._catalogue, group)

    def describe_group(self, group: str) -> GroupDescription:
        """The group's state, generation and members."""
        return self.describe_groups([group])[group]

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupDescription]:
        """The states, generations and members of several groups."""
        for group in groups:
            self._remove_dead_members(group)
        known = set(self.groups())
        return {group: self._described(group, is_known=group in known) for group in groups}

    def close(self) -> None:
        """Nothing to release: the catalogue belongs to the log."""

    def __enter__(self) -> EmbeddedAdmin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _described(self, group: str, *, is_known: bool) -> GroupDescription:
        found = read_group(self._catalogue, group)
        state = found.state if is_known else GroupState.DEAD
        members = tuple(MemberDescription(each.id, each.instance, each.assignment) for each in found.members.values())
        return GroupDescription(group, state.value, found.generation, found.strategy, members)

    def _make(self, topic: Topic, numbers: range) -> None:
        """Make the folders of new partitions, in the place of what a process left that died while it made them."""
        folder = self._home.topic_folder(topic)
        for number in numbers:
            shutil.rmtree(folder / str(number), ignore_errors=True)
            create_partition(folder / str(number), self._home.disk)
        if self._home.durability == "fsync":
            self._home.disk.sync_folder(folder)
            self._home.disk.sync_folder(folder.parent)

    def _remove_dead_members(self, group: str) -> None:
        """Take out members whose process has ended, should no other member be there to do it."""
        if read_group(self._catalogue, group).members:
            GroupCoordinator(self._home, group).care(but="")

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
    # Appenders that wait for the lock find its file gone and know.
    try:
        partition = home.partition(topic, number)
    except UnknownTopicError:
        return
    with partition.locked():
        (partition.folder / "lock").unlink()
        (partition.folder / "head").unlink()
    partition.close()
