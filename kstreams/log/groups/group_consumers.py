"""The parts that the group consumers of all homes share: settings, rebalance listeners and commit callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Protocol

from kstreams.config.key import Key
from kstreams.config.kinds import Kind
from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.offset_reset import offset_reset_of
from kstreams.log.api import OffsetAndMetadata, OnCommit, PartitionsListener
from kstreams.log.groups.assignors import assignors_named
from kstreams.log.settings import TEXT, keys, number

_logger = logging.getLogger("kstreams.groups")
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class CommitCallbacks:
    """The callbacks of a consumer's asynchronous commits, called in the next poll.

    Parameters
    ----------
    group : str or None
    """

    def __init__(self, group: str | None) -> None:
        self._group = group
        self._callbacks: list[Callable[[], None]] = []

    def commit(self, commit: Callable[[Offsets], None], offsets: Offsets, on_commit: OnCommit | None) -> None:
        """Commit now, so that commits keep their order. The next poll calls `on_commit` with the outcome.

        Without `on_commit`, a failure is logged.
        """
        error = None
        try:
            commit(offsets)
        except LogError as failed:
            error = failed
        if on_commit is not None:
            self._callbacks.append(partial(on_commit, offsets, error))
        elif error is not None:
            _logger.warning("A commit of the group %s failed: %s", self._group, error)

    def call(self) -> None:
        """Call the callbacks of the commits since the last call."""
        while self._callbacks:
            self._callbacks.pop(0)()


class GroupReader(Protocol):
    """The consumer that reads the partitions of a membership."""

    def assignment(self) -> frozenset[TopicPartition]: ...
    def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions. New ones start at the committed offset, or by `auto.offset.reset`."""
        ...


class RebalanceListeners(NamedTuple):
    """The listeners of a subscription. See `kstreams.log.api.GroupConsumer.subscribe`."""

    assigned: PartitionsListener | None = None
    revoked: PartitionsListener | None = None
    lost: PartitionsListener | None = None


def _reset(value: Any) -> str | timedelta:
    """Check the value of `auto.offset.reset`: a word or a duration."""
    expected = "one of earliest, latest, none, or a duration such as by_duration:PT1H"
    try:
        reset = offset_reset_of(value)
    except ConfigError:
        raise ValueError(expected) from None
    if reset is None:
        raise ValueError(expected)
    return reset


MEMBER_SETTINGS = keys(
    Key(
        "auto.offset.reset",
        Kind("earliest | latest | none | by_duration:PT1H", _reset),
        "earliest",
        "Where to start without a committed offset, or if the position is no longer in the log.",
    ),
    Key("client.id", TEXT, None, "Name of the client, a part of its member id, whose bytes count for a quota."),
    Key("group.id", TEXT, None, "Name of the consumer group."),
    Key("group.instance.id", TEXT, None, "Name of a static member, which keeps its partitions over a restart."),
    Key("heartbeat.interval.ms", number(1), 3_000, "Time between two heartbeats."),
    Key("max.poll.interval.ms", number(1), 300_000, "Time without a poll after which a member leaves its group."),
    Key("metadata.max.age.ms", number(0), 5_000, "Time after which topics and their partitions are read again."),
    Key(
        "partition.assignment.strategy",
        Kind("names of assignors, comma separated", assignors_named),
        assignors_named("cooperative-sticky"),
        "Assignors that the member supports, by preference.",
    ),
    Key("session.timeout.ms", number(1), 45_000, "Time without a heartbeat after which a member counts as dead."),
)


def check_times(settings: Mapping[str, Any]) -> None:
    """Raise ConfigError if the heartbeat interval is not shorter than the session timeout."""
    interval_ms = settings["heartbeat.interval.ms"]
    session_ms = settings["session.timeout.ms"]
    if interval_ms >= session_ms:
        raise ConfigError(
            f"`heartbeat.interval.ms` ({interval_ms}) must be less than `session.timeout.ms` ({session_ms}): set it to "
            "a third of that."
        )


def nothing_committed(group: str | None, partitions: str) -> str:
    """Return the message for partitions without a committed offset when `auto.offset.reset` is none."""
    return (
        f"The group {group!r} has committed nothing for {partitions}, and `auto.offset.reset` is none: commit "
        "the first offsets, or choose earliest, latest or by_duration:PT1H."
    )
