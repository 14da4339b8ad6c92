"""`CopiedTopics`: creates the copies of topics in the target, and lets their partitions and settings follow.

`Copies` records which mirrors write the topics of a home, so that a mirror by the same names makes no loop and does not
write into a topic of somebody else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from kstreams.errors import ConfigError, TopicExistsError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Ability, Admin, Log, TopicDescription
from kstreams.log.homes import TopicHome
from kstreams.log.topic_types import KEY_TYPE, VALUE_TYPE, holds_records
from kstreams.mirror.settings import COPIES_TOPIC, MirrorSettings

logger = logging.getLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact"}
_POLL_S = 0.1
_CLOCK = "retention.clock"
_RETENTION = "retention.ms"
_OWN_SETTINGS = frozenset((KEY_TYPE, VALUE_TYPE, _CLOCK))
"""The settings that Kafka does not have."""
_ALWAYS_COPIED = frozenset(("cleanup.policy", _RETENTION))
"""The settings that are copied although they have the default of the source, because defaults of homes differ."""
_NOT_COPIED = re.compile(
    r"(?:follower|leader)\.replication\.throttled\.replicas|message\.timestamp\.type|min\.insync\.replicas"
    r"|message\.timestamp\.difference\.max\.ms|unclean\.leader\.election\.enable"
)
"""The settings that depend on the brokers. MirrorMaker 2: `config.properties.exclude`."""


class EndPoint(NamedTuple):
    """One side of a mirror: a home of topics, and the open log."""

    home: TopicHome
    log: Log

    @property
    def has_own_settings(self) -> bool:
        """True if topics have the settings that Kafka does not have."""
        return Ability.TOPIC_TYPES in self.log.abilities


class Origin(msgspec.Struct, frozen=True):
    """The record of a copy.

    Parameters
    ----------
    aliases : list of str
        The homes that its records come from, the nearest first.
    topic : str
        The topic in the nearest home.
    address : str
        The address of the nearest home when the copy was created.
    """

    aliases: list[str]
    topic: str
    address: str


class Copies:
    """The origins of the topics that mirrors write in one home.

    Parameters
    ----------
    log : Log
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self) -> dict[str, Origin]:
        """Return the origins by topic."""
        own = TopicPartition(COPIES_TOPIC, 0)
        origins: dict[str, Origin] = {}
        with self._log.admin() as admin, self._log.consumer() as consumer:
            if COPIES_TOPIC not in admin.topics():
                return {}
            end = admin.end_offsets([own])[own]
            consumer.assign([own])
            while consumer.position(own) < end:
                for batch in consumer.poll(_POLL_S):
                    for row in batch.rows():
                        _take(origins, (row.key or b"").decode(), row.value)
        return origins

    def write(self, origins: Mapping[str, Origin | None]) -> None:
        """Record the origins of topics. None removes a record."""
        if not origins:
            return
        with self._log.producer() as producer:
            for topic, origin in origins.items():
                value = None if origin is None else msgspec.json.encode(origin)
                producer.send(COPIES_TOPIC, topic.encode(), value)


def _take(origins: dict[str, Origin], topic: str, value: bytes | None) -> None:
    if value is None:
        origins.pop(topic, None)
    else:
        origins[topic] = decode_json(value, Origin)


def create_internal_topic(admin: Admin, name: str, partitions: int = 1) -> TopicDescription:
    """Create a compacted topic, if it does not exist, and return its description."""
    with suppress(TopicExistsError):
        admin.create_topic(name, partitions, _COMPACTED)
    return admin.describe_topic(name)


class CopiedTopics:
    """The copies of the selected topics.

    Parameters
    ----------
    source, target : EndPoint
    settings : MirrorSettings
    """

    def __init__(self, source: EndPoint, target: EndPoint, settings: MirrorSettings) -> None:
        self._source = source
        self._target = target
        self._settings = settings
        self._source_admin = source.log.admin()
        self._target_admin = target.log.admin()
        self._source_copies = Copies(source.log)
        self._target_copies = Copies(target.log)
        self._owned: set[str] = set()
        self._warned_of: set[str] = set()
        create_internal_topic(self._target_admin, COPIES_TOPIC)

    def refresh(self) -> dict[TopicPartition, TopicPartition]:
        """Create and alter copies as needed. Return the partitions of the target by those of the source."""
        selected = [topic for topic in self._source_admin.topics().values() if self._settings.copies(topic.name)]
        target_topics = self._target_admin.topics()
        self._own(selected, target_topics)
        copies: dict[TopicPartition, TopicPartition] = {}
        for topic in selected:
            remote = self._settings.policy.remote_topic(topic.name)
            if remote not in self._owned:
                continue
            with suppress(UnknownTopicError):  # the topic was deleted just now
                self._follow(topic, remote, target_topics.get(remote))
                copies |= {
                    TopicPartition(topic.name, number): TopicPartition(remote, number)
                    for number in range(topic.partitions)
                }
        return copies

    def close(self) -> None:
        """Release the clients."""
        self._source_admin.close()
        self._target_admin.close()

    def _follow(self, topic: TopicDescription, remote: str, copy: TopicDescription | None) -> None:
        """Let a copy have the partitions and the settings of its topic."""
        config = copied_settings(topic.config, self._source, self._target)
        if copy is None:
            with suppress(TopicExistsError):  # another process of the mirror has created it
                self._target_admin.create_topic(remote, topic.partitions, config)
            return
        if copy.partitions < topic.partitions:
            with suppress(ConfigError):  # another process of the mirror has added them
                self._target_admin.add_partitions(remote, topic.partitions)
        changes = _changes(config, copy.config, self._target)
        if changes:
            self._target_admin.alter_topic(remote, changes)

    def _own(self, topics: Collection[TopicDescription], target_topics: Mapping[str, TopicDescription]) -> None:
        """Record that this mirror writes the copies of topics, unless it must not.

        The origins of the source are read again after the records are written. So of two mirrors in opposite directions
        that start at once, one sees the records of the other.
        """
        remotes = {self._settings.policy.remote_topic(topic.name): topic.name for topic in topics}
        new = {remote: topic for remote, topic in remotes.items() if remote not in self._owned}
        if not new:
            return
        source_origins = self._source_copies.read()
        target_origins = self._target_copies.read()
        writable = {
            remote: self._origin(topic, source_origins)
            for remote, topic in new.items()
            if self._may_write(remote, topic, target_origins, target_topics)
            and not self._is_loop(topic, source_origins)
        }
        unrecorded = {remote: origin for remote, origin in writable.items() if remote not in target_origins}
        if unrecorded:
            self._target_copies.write(unrecorded)
            source_origins = self._source_copies.read()
        self._warn_of_other_source(target_origins[remote] for remote in writable.keys() & target_origins.keys())
        loops = {remote for remote in unrecorded if self._is_loop(new[remote], source_origins)}
        self._target_copies.write(dict.fromkeys(loops))
        self._owned |= writable.keys() - loops

    def _warn_of_other_source(self, origins: Iterable[Origin]) -> None:
        """Warn if the alias had another address, because two sources with one alias would share their positions."""
        address = self._source.home.address
        for former in {origin.address for origin in origins} - {address}:
            self._warn_once(
                former,
                f"The source {self._settings.policy.source!r} was {former} before, and is {address} now: if these are "
                "different homes, stop, and give this one another alias (--source-alias).",
            )

    def _origin(self, topic: str, source_origins: Mapping[str, Origin]) -> Origin:
        """Return the origin of a copy: the source, and where the source has the topic from."""
        earlier = source_origins.get(topic)
        aliases = [self._settings.policy.source, *([] if earlier is None else earlier.aliases)]
        return Origin(aliases, topic, self._source.home.address)

    def _may_write(
        self,
        remote: str,
        topic: str,
        target_origins: Mapping[str, Origin],
        target_topics: Mapping[str, TopicDescription],
    ) -> bool:
        """Return False, with a warning, if a topic of the target has records of somebody else."""
        origin = target_origins.get(remote)
        copy = target_topics.get(remote)
        if origin is None:
            has_records = copy is not None and holds_records(self._target_admin, copy)
            reason = "it has records that this mirror has not written" if has_records else None
        elif (origin.aliases[0], origin.topic) == (self._settings.policy.source, topic):
            reason = None
        else:
            reason = f"a mirror of {origin.aliases[0]!r} writes it"
        if reason is None:
            return True
        self._warn_once(
            remote,
            f"{remote} of {self._target.home} is not written, because {reason}: delete it, leave its topic out "
            "(--exclude), or give the source another alias.",
        )
        return False

    def _is_loop(self, topic: str, source_origins: Mapping[str, Origin]) -> bool:
        """Return True, with a warning, if the records of a topic come from the target."""
        target = self._settings.policy.target
        is_loop = target in self._origin(topic, source_origins).aliases
        if is_loop:
            self._warn_once(
                topic,
                f"{topic} is not copied: a mirror writes it with the records of {target}, which would return to their "
                "origin.",
            )
        return is_loop

    def _warn_once(self, topic: str, text: str) -> None:
        if topic not in self._warned_of:
            logger.warning("%s", text)
        self._warned_of.add(topic)


def copied_settings(config: Mapping[str, str], source: EndPoint, target: EndPoint) -> dict[str, str]:
    """Return the settings that a copy has: those that are set on the topic, in the form of the target.

    A topic of the embedded log that counts its retention from the newest record retains all records on Kafka.
    """
    defaults = source.home.topic_defaults()
    settings = {
        key: value
        for key, value in config.items()
        if not _NOT_COPIED.fullmatch(key) and (key in _ALWAYS_COPIED or value != defaults.get(key))
    }
    if target.has_own_settings:
        known_settings = target.home.topic_defaults().keys() | _OWN_SETTINGS
        if settings.get("compression.type") not in (None, "producer", "lz4", "zstd"):
            settings["compression.type"] = "none" if settings["compression.type"] == "uncompressed" else "producer"
        return {key: value for key, value in settings.items() if key in known_settings}
    if settings.get(_CLOCK) == "record":
        settings[_RETENTION] = "-1"
    if settings.get("compression.type") == "none":
        settings["compression.type"] = "uncompressed"
    return {key: value for key, value in settings.items() if key not in _OWN_SETTINGS}


def _changes(config: Mapping[str, str], present: Mapping[str, str], target: EndPoint) -> dict[str, str | None]:
    """Return the settings of a copy to change. None restores a default."""
    defaults = target.home.topic_defaults()
    obsolete = {
        key: None
        for key, value in present.items()
        if key not in config and value != defaults.get(key) and not _NOT_COPIED.fullmatch(key)
    }
    return obsolete | {key: value for key, value in config.items() if present.get(key) != value}
