"""Where a partition is read from when nothing is committed for it: what its source says, else the configuration."""

from __future__ import annotations

from datetime import timedelta

from kstreams.batch import TopicPartition
from kstreams.config import Config
from kstreams.durations import to_ms
from kstreams.errors import LogError
from kstreams.log.api import Admin, Consumer
from kstreams.offset_reset import offset_reset_of
from kstreams.processor.topology import SubTopology


def reset_of(sub_topology: SubTopology, topic: str, config: Config) -> str | timedelta:
    """What holds for a topic (by its real name) of a sub-topology.

    An internal topic, which no source names so, is read from its beginning.
    """
    for source in sub_topology.sources:
        if topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic)):
            default = config.prefixed("consumer.").get("auto.offset.reset", "earliest")
            return source.offset_reset if source.offset_reset is not None else offset_reset_of(default) or "earliest"
    return "earliest"


def first_offset(source: TopicPartition, reset: str | timedelta, admin: Admin, consumer: Consumer, now_ms: int) -> int:
    """The offset at which to begin.

    Parameters
    ----------
    source : TopicPartition
    reset : str or timedelta
        As `reset_of` gives it.
    admin, consumer
        The assignment of the consumer is changed.
    now_ms : int
        From when durations count back.

    Raises
    ------
    LogError
        When the reset is "none".
    """
    if isinstance(reset, timedelta):
        consumer.assign([source])
        consumer.seek_to_time(source, now_ms - to_ms(reset))
        offset = consumer.position(source)
        consumer.assign([])
        return offset
    if reset == "none":
        raise LogError(
            f'Nothing is committed for {source}, or it was deleted, and offset_reset of its source is "none": commit '
            'where to begin, or choose "earliest", "latest" or a duration.'
        )
    if reset == "latest":
        return admin.end_offsets([source], committed_only=False)[source]
    return admin.beginning_offsets([source])[source]
