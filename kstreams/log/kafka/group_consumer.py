"""`KafkaGroupConsumer`: a consumer with a `group.id`, which commits for its group and reads its assigned partitions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.durations import to_ms
from kstreams.log.api import GroupMetadata, OffsetAndMetadata, OnCommit, PartitionsListener
from kstreams.log.groups.group_consumers import CommitCallbacks, RebalanceListeners, nothing_committed
from kstreams.log.kafka.admin import KafkaAdmin
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.consumer import KafkaConsumer
from kstreams.log.kafka.membership import KafkaMembership, client_of_reader, read_member_settings
from kstreams.log.kafka.offset_commits import Offsets

_GROUP_POLL_S = 0.05  # the interval at which `poll` takes part in the group while it waits for records


class KafkaGroupConsumer(KafkaConsumer):
    """See `kstreams.log.api.GroupConsumer`.

    Parameters
    ----------
    connection : Connection
    config : mapping
        Settings of `KafkaConsumer`, and of the member: `group.id`, `group.instance.id`, `client.id`,
        `auto.offset.reset`, `session.timeout.ms`, `heartbeat.interval.ms`, `max.poll.interval.ms`,
        `metadata.max.age.ms` and `partition.assignment.strategy` (`cooperative-sticky`; or any of `range`,
        `roundrobin`).
    """

    def __init__(self, connection: Connection, config: Mapping[str, Any]) -> None:
        self._config = dict(config)
        self._settings = read_member_settings(config)
        super().__init__(connection, client_of_reader(self._config, self._settings))
        self._group: str = self._settings["group.id"]
        self._membership: KafkaMembership | None = None
        self._commit_callbacks = CommitCallbacks(self._group)

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsListener | None = None,
        on_revoked: PartitionsListener | None = None,
        on_lost: PartitionsListener | None = None,
    ) -> None:
        """Read the partitions of these topics that the group assigns, from the next `poll` on."""
        self.unsubscribe()
        listeners = RebalanceListeners(on_assigned, on_revoked, on_lost)
        self._membership = KafkaMembership(self._connection, self._config, self._settings, self, topics, listeners)

    def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        try:
            if self._membership is not None:
                self._membership.leave()
        finally:
            self._membership = None
            super().assign([])

    def leave(self) -> None:
        """Leave the group immediately, and read nothing. A static member cannot leave on Kafka.

        Raises
        ------
        LogError
            If this is a static member.
        """
        if self._settings["group.instance.id"] is not None:
            raise LogError(
                f"The static member {self._settings['group.instance.id']!r} of the group {self._group!r} cannot leave "
                "before its session ends: Kafka's client has no request for it. Close it without leaving the group."
            )
        self.unsubscribe()

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions, atomically."""
        committed = self._positions() if offsets is None else offsets
        if self._membership is None:
            KafkaAdmin(self._connection).commit(self._group, committed)
        else:
            self._membership.commit(committed)

    def commit_async(self, offsets: Offsets | None = None, on_commit: OnCommit | None = None) -> None:
        """Commit. The next `poll` calls `on_commit` with the outcome. Without `on_commit`, a failure is logged."""
        self._commit_callbacks.commit(self.commit, self._positions() if offsets is None else dict(offsets), on_commit)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the group. Partitions without an offset are missing."""
        return KafkaAdmin(self._connection).committed(self._group, partitions)

    def group_metadata(self) -> GroupMetadata:
        """Return the metadata of this member, for `Producer.commit_transaction`."""
        return GroupMetadata(self._group) if self._membership is None else self._membership.metadata()

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions. New ones start at the beginning of the log."""
        if self._membership is not None:
            raise LogError("This consumer has subscribed, so its group assigns: unsubscribe first.")
        super().assign(partitions)

    def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions. New ones start at the committed offset, or by `auto.offset.reset`."""
        self._assign(partitions, self._start_offsets)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return at most `max_records` rows. Waits up to `timeout` seconds if there are none."""
        self._commit_callbacks.call()
        if self._membership is None:
            return super().poll(timeout, max_records)
        deadline = monotonic() + timeout
        while True:
            wait_s = max(0.0, min(deadline - monotonic(), _GROUP_POLL_S))
            self._membership.poll(0 if self.assignment() else wait_s)
            batches = super().poll(wait_s if self.assignment() else 0, max_records)
            if batches or monotonic() >= deadline:
                return batches

    def close(self) -> None:
        """Leave the group and close the clients. Batches that were polled stay valid."""
        try:
            self.unsubscribe()
        finally:
            super().close()

    def _start_offsets(self, sources: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets at which to start reading new partitions."""
        offsets = {source: committed.offset for source, committed in self.committed(sources).items()}
        uncommitted = sorted(set(sources) - offsets.keys())
        reset = self._settings["auto.offset.reset"]
        if not uncommitted:
            return offsets
        if isinstance(reset, timedelta):
            times = dict.fromkeys(uncommitted, self._connection.clock.wall_ms() - to_ms(reset))
            return offsets | self._connection.offsets_at_times(times, committed_only=self._is_committed_only)
        if reset == "none":
            raise LogError(nothing_committed(self._group, ", ".join(map(str, uncommitted))))
        return offsets | (
            self.end_offsets(uncommitted) if reset == "latest" else self._connection.beginnings(uncommitted)
        )

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {source: OffsetAndMetadata(self.position(source)) for source in self.assignment()}
