"""The offset reset of a source: where a partition is read if nothing is committed, or next records were deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from kstreams.config import Config
from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.durations import to_ms
from kstreams.kernel.offset_reset import offset_reset_of
from kstreams.log.api import Admin, Consumer
from kstreams.processor.topology.nodes import SubTopology, reader_of

Reset: TypeAlias = str | timedelta


def default_reset(config: Config) -> Reset | None:
    """Return the configured reset of sources without their own; the main consumer's setting goes first.

    Examples
    --------
    >>> default_reset(Config.of({"auto.offset.reset": "latest"}))
    'latest'
    >>> default_reset(Config.of({"auto.offset.reset": "latest", "main.consumer.auto.offset.reset": "earliest"}))
    'earliest'
    """
    named = (config.get(f"{prefix}auto.offset.reset") for prefix in ("main.consumer.", "consumer.", ""))
    return offset_reset_of(next(filter(None, named), None))


def reset_of(sub_topology: SubTopology, topic: str, default: Reset | None) -> Reset:
    """Return the reset of a topic (by its real name) of a sub-topology.

    An internal topic is read from its beginning: no source names it by its real name.
    """
    decided = _decided(sub_topology, topic, default)
    return "earliest" if decided is None else decided


def reset_after_loss(
    sub_topology: SubTopology, source: TopicPartition, span: tuple[int, int], default: Reset | None, *, stateful: bool
) -> Reset:
    """Return the reset after the next records were deleted before they were read.

    Parameters
    ----------
    sub_topology : SubTopology
        The reader of the records.
    source : TopicPartition
    span : (int, int)
        The next offset to read, and the first offset that exists.
    default : str, timedelta or None
        The result of `default_reset`.
    stateful : bool
        True if stores depend on the records: without them they would be incomplete.

    Raises
    ------
    LogError
        If state depends on the records and the user has set no reset; or if the reset is "none".
    """
    decided = _decided(sub_topology, source.topic, default)
    if not may_be_missed(sub_topology, source.topic, default, stateful=stateful):
        next_, first = span
        why = "state depends on the rest" if decided is None else 'its offset_reset is "none"'
        raise LogError(
            f"{source} was deleted up to offset {first}, but the application has read it only up to offset {next_}, "
            f"and {why}. Keep the topic longer (`retention.ms`) and run once with --reset to start anew; or go on "
            f"without the {first - next_} records: set consumer.auto.offset.reset, or offset_reset= of the source, to "
            "earliest or latest."
        )
    return "earliest" if decided is None else decided


def may_be_missed(sub_topology: SubTopology, topic: str, default: Reset | None, *, stateful: bool) -> bool:
    """Return whether deleted records of a topic may be skipped, or are an error."""
    decided = _decided(sub_topology, topic, default)
    return not stateful if decided is None else decided != "none"


def _decided(sub_topology: SubTopology, topic: str, default: Reset | None) -> Reset | None:
    """Return the user's setting for a topic; None if there is none, as for internal topics."""
    source = reader_of(sub_topology.sources, topic)
    if source is None or source.offset_reset is not None:
        return None if source is None else source.offset_reset
    return default


def first_offset(source: TopicPartition, reset: Reset, admin: Admin, consumer: Consumer, now_ms: int) -> int:
    """Return the offset at which to begin.

    Parameters
    ----------
    source : TopicPartition
    reset : str or timedelta
        The result of `reset_of`.
    admin, consumer
        The assignment of the consumer is changed.
    now_ms : int
        The time from which durations count back.

    Raises
    ------
    LogError
        If the reset is "none".
    """
    if isinstance(reset, timedelta):
        consumer.assign([source])
        consumer.seek_to_time(source, now_ms - to_ms(reset))
        offset = consumer.position(source)
        consumer.assign([])
        return offset
    if reset == "none":
        raise LogError(
            f'Nothing is committed for {source}, and offset_reset of its source is "none": commit where to begin, or '
            'choose "earliest", "latest" or a duration.'
        )
    if reset == "latest":
        return admin.end_offsets([source], committed_only=False)[source]
    return admin.beginning_offsets([source])[source]
