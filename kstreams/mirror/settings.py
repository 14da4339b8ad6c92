"""`MirrorSettings`: what a mirror copies and how often, and `ReplicationPolicy`: the names of copied topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kstreams.errors import ConfigError
from kstreams.log.naming import check_topic_name

GROUP_PREFIX = "kstreams-mirror."
"""The names of groups and transactional ids of mirrors begin with it."""
_INTERNAL_TOPICS = re.compile(r"mm2.*\.internal|.*[._-]checkpoints[._-]internal|__.*|[.].*")


@dataclass(frozen=True, slots=True)
class ReplicationPolicy:
    """The names of copied topics, and of the topics in which a mirror keeps its own records.

    MirrorMaker 2: `DefaultReplicationPolicy`, and with `identity` `IdentityReplicationPolicy`.

    Parameters
    ----------
    source, target : str
        The aliases of the two homes, unique among the mirrors of the target.
    separator : str, default "."
        The text between an alias and the name of a topic (`replication.policy.separator`).
    identity : bool, default False
        True if copies have the names of their topics.

    Raises
    ------
    ConfigError
        If an alias or the separator is illegal in the name of a topic, or both aliases are equal.

    Examples
    --------
    >>> policy = ReplicationPolicy("east", "west")
    >>> policy.remote_topic("orders"), policy.is_cycle("west.orders"), policy.is_cycle("north.orders")
    ('east.orders', True, False)
    """

    source: str = "source"
    target: str = "target"
    separator: str = "."
    identity: bool = False

    def __post_init__(self) -> None:
        for name in (self.source, self.target, f"a{self.separator}b"):
            check_topic_name(name)
        if self.source == self.target:
            raise ConfigError(
                f"Both homes have the alias {self.source!r}, so that a mirror could not tell its own copies: give two "
                "(--source-alias, --target-alias)."
            )

    def remote_topic(self, topic: str) -> str:
        """Return the name of a topic's copy in the target. MirrorMaker 2: `formatRemoteTopic`."""
        return topic if self.identity else f"{self.source}{self.separator}{topic}"

    def is_cycle(self, topic: str) -> bool:
        """Return True if the name tells that the topic has been copied from the target. MirrorMaker 2: `isCycle`."""
        aliases = topic.split(self.separator)[:-1]
        return not self.identity and self.target in aliases

    @property
    def offset_syncs_topic(self) -> str:
        """The topic of the target with the positions of the mirror. MirrorMaker 2 ignores it by its name."""
        return f"mm2-kstreams-offset-syncs.{self.source}.internal"

    @property
    def checkpoints_topic(self) -> str:
        """The topic of the target with translated group offsets, in the format of MirrorMaker 2."""
        return f"{self.source}{self.separator}checkpoints{self.separator}internal"

    @property
    def group(self) -> str:
        """The group of the target in which the processes of the mirror share its tasks."""
        return f"{GROUP_PREFIX}{self.source}"


HEARTBEATS_TOPIC = "heartbeats"
"""The topic of the target with heartbeats, in the format of MirrorMaker 2."""
COPIES_TOPIC = "mm2-kstreams-copies.internal"
"""The topic of the target with the origins of the topics that mirrors write there."""


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Names that match one of `include` and none of `exclude`, as whole names. MirrorMaker 2: `DefaultTopicFilter`.

    Parameters
    ----------
    include, exclude : tuple of str
        Regular expressions, or lists of them with commas between.

    Examples
    --------
    >>> names = NameFilter(("orders,payments.*",), ("payments-test",))
    >>> [names.matches(name) for name in ("orders", "payments-eu", "payments-test", "orders-2")]
    [True, True, False, False]
    """

    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            try:
                re.compile(_alternatives((pattern,)))
            except re.error as error:
                raise ConfigError(f"{pattern!r} is no regular expression for names: {error}") from None

    def matches(self, name: str) -> bool:
        """Return True if a name is selected."""
        is_included = re.fullmatch(_alternatives(self.include), name) is not None
        return is_included and re.fullmatch(_alternatives(self.exclude), name) is None


def _alternatives(patterns: Iterable[str]) -> str:
    parts = [part.strip() for pattern in patterns for part in pattern.split(",") if part.strip()]
    return "|".join(f"(?:{part})" for part in parts) or r"(?!)"


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """The settings of a mirror, with the defaults of MirrorMaker 2 for names and exclusions.

    Parameters
    ----------
    policy : ReplicationPolicy
    topics, groups : NameFilter
        The topics that are copied, and the groups whose offsets are translated (`topics`, `topics.exclude`, `groups`,
        `groups.exclude`).
    tasks : int, default 1
        The number of tasks that processes share (`tasks.max`). It is fixed by the first start.
    commit_interval_ms : int, default 500
        The longest duration of a transaction.
    refresh_interval_ms : int, default 5000
        The interval at which new topics, partitions and settings are noticed (`refresh.topics.interval.seconds`).
    sync_interval_ms : int, default 5000
        The interval at which group offsets are translated (`sync.group.offsets.interval.seconds`).
    heartbeat_interval_ms : int, default 1000
        The interval of heartbeats (`emit.heartbeats.interval.seconds`).

    Raises
    ------
    ConfigError
        If a number is below 1.

    Examples
    --------
    >>> settings = MirrorSettings(ReplicationPolicy("east", "west"))
    >>> settings.copies("orders"), settings.copies("west.orders"), settings.copies("__consumer_offsets")
    (True, False, False)
    """

    policy: ReplicationPolicy = ReplicationPolicy()
    topics: NameFilter = NameFilter(exclude=(r".*\.replica",))
    groups: NameFilter = NameFilter(exclude=("console-consumer-.*", "connect-.*", "__.*"))
    tasks: int = 1
    commit_interval_ms: int = 500
    refresh_interval_ms: int = 5_000
    sync_interval_ms: int = 5_000
    heartbeat_interval_ms: int = 1_000

    def __post_init__(self) -> None:
        numbers = (
            self.tasks,
            self.commit_interval_ms,
            self.refresh_interval_ms,
            self.sync_interval_ms,
            self.heartbeat_interval_ms,
        )
        if min(numbers) < 1:
            raise ConfigError("The tasks and the intervals of a mirror are 1 at least: give greater numbers.")

    def copies(self, topic: str) -> bool:
        """Return True if the name of a topic of the source is selected, and is no internal topic and no cycle."""
        is_heartbeat_of_target = self.policy.identity and topic == HEARTBEATS_TOPIC
        is_excluded = is_heartbeat_of_target or _INTERNAL_TOPICS.fullmatch(topic) is not None
        return not is_excluded and self.topics.matches(topic) and not self.policy.is_cycle(topic)

    def translates(self, group: str) -> bool:
        """Return True if the offsets of a group of the source are translated."""
        return not group.startswith(GROUP_PREFIX) and self.groups.matches(group)
