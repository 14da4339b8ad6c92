"""Settings of a consumer that concern its group, the same for every home."""

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


class CommitReports:
    """The reports of one consumer.

    Parameters
    ----------
    group : str or None
    """

    def __init__(self, group: str | None) -> None:
        self._group = group
        self._waiting: list[Callable[[], None]] = []

    def commit(self, commit: Callable[[Offsets], None], offsets: Offsets, on_commit: OnCommit | None) -> None:
        """Commit at once, so that later commits come later; without `on_commit` a log line says what failed."""
        error = None
        try:
            commit(offsets)
        except LogError as failed:
            error = failed
        if on_commit is not None:
            self._waiting.append(partial(on_commit, offsets, error))
        elif error is not None:
            _logger.warning("A commit of the group %s failed: %s", self._group, error)

    def tell(self) -> None:
        """Call who waits for a report."""
        while self._waiting:
            self._waiting.pop(0)()


class Reading(Protocol):
    """What a membership does to the consumer that reads."""

    def assignment(self) -> frozenset[TopicPartition]: ...
    def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these: those kept from where they are, new ones from where the group is."""
        ...


class Listeners(NamedTuple):
    """What the user wants to be told of; see `kstreams.log.api.GroupConsumer.subscribe`."""

    assigned: PartitionsListener | None = None
    revoked: PartitionsListener | None = None
    lost: PartitionsListener | None = None


def _reset(value: Any) -> str | timedelta:
    """Reads a word or a duration."""
    expected = "one of earliest, latest, none, or a duration such as by_duration:PT1H"
    try:
        found = offset_reset_of(value)
    except ConfigError:
        raise ValueError(expected) from None
    if found is None:
        raise ValueError(expected)
    return found


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
    """Raise ConfigError for a heart that beats too slowly."""
    beat_ms = settings["heartbeat.interval.ms"]
    session_ms = settings["session.timeout.ms"]
    if beat_ms >= session_ms:
        raise ConfigError(
            f"`heartbeat.interval.ms` ({beat_ms}) is less than `session.timeout.ms` ({session_ms}), best a third of it."
        )


def nothing_committed(group: str | None, partitions: str) -> str:
    """What to say of partitions without a commit when `auto.offset.reset` is none."""
    return (
        f"The group {group!r} has committed nothing for {partitions}, and `auto.offset.reset` is none: commit where to "
        "begin, or choose earliest, latest or by_duration:PT1H."
    )
