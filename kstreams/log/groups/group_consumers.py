"""The parts of group consumers that all homes share: settings of members, rebalance listeners, commit callbacks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Protocol

from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.offset_reset import offset_reset_of
from kstreams.log.api import OffsetAndMetadata, OnCommit, PartitionsListener
from kstreams.log.groups.assignors import assignors_named
from kstreams.log.settings import Setting, number, text

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
        """Commit at once, so that commits keep their order; `on_commit` gets the outcome in the next poll.

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
        """Read exactly these partitions; new ones start at the committed offset, or by `auto.offset.reset`."""
        ...


class RebalanceListeners(NamedTuple):
    """The listeners of a subscription; see `kstreams.log.api.GroupConsumer.subscribe`."""

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


MEMBER_SETTINGS = {
    "auto.offset.reset": Setting("earliest", _reset),
    "client.id": Setting(None, text),
    "group.id": Setting(None, text),
    "group.instance.id": Setting(None, text),
    "heartbeat.interval.ms": Setting(3_000, number(1)),
    "max.poll.interval.ms": Setting(300_000, number(1)),
    "metadata.max.age.ms": Setting(5_000, number(0)),
    "partition.assignment.strategy": Setting(assignors_named("cooperative-sticky"), assignors_named),
    "session.timeout.ms": Setting(45_000, number(1)),
}


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
        f"The group {group!r} has committed nothing for {partitions}, and `auto.offset.reset` is none: commit where to "
        "begin, or choose earliest, latest or by_duration:PT1H."
    )
