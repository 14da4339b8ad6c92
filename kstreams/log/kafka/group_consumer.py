"""`KafkaGroupConsumer`: a consumer with a `group.id`: it commits for its group, and reads what the group gives it."""

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
from kstreams.log.groups.group_consumers import CommitReports, Listeners, nothing_committed
from kstreams.log.kafka.admin import KafkaAdmin
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.consumer import KafkaConsumer
from kstreams.log.kafka.membership import KafkaMembership, client_of_reader, read_member_settings
from kstreams.log.kafka.offset_commits import Offsets

_ATTENTION_S = 0.05  # after so long a member that waits for records looks at its group again


class KafkaGroupConsumer(KafkaConsumer):
    """See `kstreams.log.api.GroupConsumer`.

    Parameters
    ----------
    connection : Connection
    config : mapping
        Those of `KafkaConsumer`, and of the member: `group.id`, `group.instance.id`, `client.id`, `auto.offset.reset`,
        `session.timeout.ms`, `heartbeat.interval.ms`, `max.poll.interval.ms`, `metadata.max.age.ms` and
        `partition.assignment.strategy` (`cooperative-sticky`; or any of `range`, `roundrobin`).
    """

    def __init__(self, connection: Connection, config: Mapping[str, Any]) -> None:
        self._given = dict(config)
        self._settings = read_member_settings(config)
        super().__init__(connection, client_of_reader(self._given, self._settings))
        self._group: str = self._settings["group.id"]
        self._membership: KafkaMembership | None = None
        self._reports = CommitReports(self._group)

    def subscribe(
        self,
        topics: Collection[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsListener | None = None,
        on_revoked: PartitionsListener | None = None,
        on_lost: PartitionsListener | None = None,
    ) -> None:
        """Read what the group gives this member of these topics, from the next `poll` on."""
        self.unsubscribe()
        listeners = Listeners(on_assigned, on_revoked, on_lost)
        self._membership = KafkaMembership(self._connection, self._given, self._settings, self, topics, listeners)

    def unsubscribe(self) -> None:
        """Leave the group, and read nothing."""
        try:
            if self._membership is not None:
                self._membership.leave()
        finally:
            self._membership = None
            super().assign([])

    def leave(self) -> None:
        """Leave the group at once, and read nothing; the client of Kafka keeps the place of a static member."""
        if self._settings["group.instance.id"] is not None:
            raise LogError(
                f"The static member {self._settings['group.instance.id']!r} of the group {self._group!r} cannot leave "
                "before its session ends: Kafka's client has no request for it. Close it without leaving the group."
            )
        self.unsubscribe()

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets, or the positions of all assigned partitions, as one."""
        wanted = self._positions() if offsets is None else offsets
        if self._membership is None:
            KafkaAdmin(self._connection).commit(self._group, wanted)
        else:
            self._membership.commit(wanted)

    def commit_async(self, offsets: Offsets | None = None, on_commit: OnCommit | None = None) -> None:
        """Commit; `on_commit` is told at the next `poll` what came of it, a log line says what failed without one."""
        self._reports.commit(self.commit, self._positions() if offsets is None else dict(offsets), on_commit)

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are left out."""
        return KafkaAdmin(self._connection).committed(self._group, partitions)

    def group_metadata(self) -> GroupMetadata:
        """Who commits for the group now; for `Producer.commit_transaction`."""
        return GroupMetadata(self._group) if self._membership is None else self._membership.metadata()

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these; new ones start at the beginning of the log."""
        if self._membership is not None:
            raise LogError("This consumer has subscribed, so its group assigns: unsubscribe first.")
        super().assign(partitions)

    def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these; new ones start where the group is, else where `auto.offset.reset` says."""
        self._assign(partitions, self._begins)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """What was fetched, at most `max_records` rows; waits up to `timeout` seconds when there is nothing."""
        self._reports.tell()
        if self._membership is None:
            return super().poll(timeout, max_records)
        until = monotonic() + timeout
        while True:
            wait = max(0.0, min(until - monotonic(), _ATTENTION_S))
            self._membership.attend(0 if self.assignment() else wait)
            batches = super().poll(wait if self.assignment() else 0, max_records)
            if batches or monotonic() >= until:
                return batches

    def close(self) -> None:
        """Leave the group and release the clients; batches that were polled stay valid."""
        try:
            self.unsubscribe()
        finally:
            super().close()

    def _begins(self, sources: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Where to begin to read partitions that are new here."""
        known = {source: at.offset for source, at in self.committed(sources).items()}
        rest = sorted(set(sources) - known.keys())
        reset = self._settings["auto.offset.reset"]
        if not rest:
            return known
        if isinstance(reset, timedelta):
            return known | self._offsets_since(rest, self._connection.clock.wall_ms() - to_ms(reset))
        if reset == "none":
            raise LogError(nothing_committed(self._group, ", ".join(map(str, rest))))
        return known | (self.end_offsets(rest) if reset == "latest" else self._connection.beginnings(rest))

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {source: OffsetAndMetadata(self.position(source)) for source in self.assignment()}
