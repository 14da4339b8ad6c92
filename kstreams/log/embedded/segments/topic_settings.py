"""Settings of topics, by Kafka's names: the table, and the values that the log uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.config.key import Key
from kstreams.config.kinds import Kind
from kstreams.errors import SerdeError
from kstreams.log.embedded.segments.appender import SegmentLimits
from kstreams.log.embedded.segments.frame import HEADER_SIZE, MAX_BODY
from kstreams.log.record_checks import TopicFacts
from kstreams.log.settings import choice, keys, number, read_settings, subset
from kstreams.log.topic_types import KEY_TYPE, MIXED, VALUE_TYPE
from kstreams.serdes import serde_named, type_name

_DAY_MS = 24 * 60 * 60 * 1000


def _type(value: Any) -> str | None:
    """Check the name of a type. A name with a dot may belong to a class that only another process can import."""
    if value is None or value == MIXED or "." in str(value):
        return None if value is None else str(value)
    try:
        return type_name(serde_named(str(value)))
    except SerdeError as error:
        raise ValueError(f"a type ({error})") from None


_TYPE = Kind("name of a type", _type)
# Kafka's defaults, except that records are kept without limit by default (Kafka: `retention.ms` is 7 days).
TOPIC_SETTINGS = keys(
    Key("cleanup.policy", subset("compact", "delete"), "delete", "Whether old records are deleted, compacted or both."),
    Key(
        "compression.type",
        choice("producer", "none", "lz4", "zstd"),
        "producer",
        "Compression of new records; `producer`: by the setting of each producer.",
    ),
    Key("delete.retention.ms", number(0), _DAY_MS, "Time that compaction keeps tombstones."),
    Key(KEY_TYPE, _TYPE, None, "Type of the keys, for tools that show records.", own=True),
    Key(VALUE_TYPE, _TYPE, None, "Type of the values, for tools that show records.", own=True),
    Key("max.message.bytes", number(1024, MAX_BODY - HEADER_SIZE), 1_048_588, "Greatest size of a record."),
    Key(
        "message.timestamp.type",
        choice("CreateTime", "LogAppendTime"),
        "CreateTime",
        "Whether records have the timestamps of their producer, or the time at which they are appended.",
    ),
    Key("min.compaction.lag.ms", number(0), 0, "Age before which records are not compacted."),
    Key("retention.bytes", number(-1), -1, "Size of a partition above which old segments are deleted; -1: no limit."),
    Key(
        "retention.clock",
        choice("wall", "record"),
        "wall",
        "Where `retention.ms` counts back from: now (`wall`), or the newest timestamp of the partition (`record`).",
        own=True,
    ),
    Key("retention.ms", number(-1), -1, "Age after which segments are deleted; -1: no limit."),
    Key("segment.bytes", number(1024, 1 << 40), 1 << 30, "Size at which a segment is complete."),
    Key("segment.ms", number(1), 7 * _DAY_MS, "Time after its first record at which a segment is complete."),
)


def full_config(config: Mapping[str, Any] | None) -> dict[str, str]:
    """Return every topic setting that has a value, as text: those of `config`, checked, over the defaults."""
    settings = read_settings("topic", TOPIC_SETTINGS, config)
    return {key: str(value) for key, value in settings.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of a topic, typed. Times are in milliseconds; -1 stands for no limit."""

    compact: bool
    delete: bool
    compression: str  # "producer": the producer's `compression.type` applies
    delete_retention_ms: int
    max_message_bytes: int
    min_compaction_lag_ms: int
    retention_bytes: int
    retention_by_record: bool  # age counts from the newest record, not from now
    retention_ms: int
    limits: SegmentLimits
    log_append_time: bool = False  # whether records get the time at which they are appended

    @classmethod
    def of(cls, config: Mapping[str, str]) -> TopicSettings:
        """Return the settings of a stored configuration."""
        read = read_settings("topic", TOPIC_SETTINGS, config)
        policy = read["cleanup.policy"].split(",")
        return cls(
            compact="compact" in policy,
            delete="delete" in policy,
            compression=read["compression.type"],
            delete_retention_ms=read["delete.retention.ms"],
            max_message_bytes=read["max.message.bytes"],
            min_compaction_lag_ms=read["min.compaction.lag.ms"],
            retention_bytes=read["retention.bytes"],
            retention_by_record=read["retention.clock"] == "record",
            retention_ms=read["retention.ms"],
            limits=SegmentLimits(read["segment.bytes"], read["segment.ms"]),
            log_append_time=read["message.timestamp.type"] == "LogAppendTime",
        )

    def facts(self, partitions: int) -> TopicFacts:
        """Return the facts for producers of a topic with these settings."""
        return TopicFacts(partitions, self.max_message_bytes, self.compact)
