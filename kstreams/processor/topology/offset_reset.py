"""Where a partition is read from when nothing is committed for it, or what comes next was deleted: what its source
says, else the configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from kstreams.config import Config
from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.durations import to_ms
from kstreams.kernel.offset_reset import offset_reset_of
from kstreams.log.api import Admin, Consumer
from kstreams.processor.topology.nodes import SubTopology
from kstreams.processor.topology.readers import reader_of

Reset: TypeAlias = str | timedelta


def default_reset(config: Config) -> Reset | None:
    """What the configuration says for sources that say nothing themselves, of the main consumer before all consumers.

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
    """What holds for a topic (by its real name) of a sub-topology.

    An internal topic, which no source names so, is read from its beginning.
    """
    decided = _decided(sub_topology, topic, default)
    return "earliest" if decided is None else decided


def reset_after_loss(
    sub_topology: SubTopology, source: TopicPartition, span: tuple[int, int], default: Reset | None, *, stateful: bool
) -> Reset:
    """What holds when the records that come next were deleted before they were read.

    Parameters
    ----------
    sub_topology : SubTopology
        It reads them.
    source : TopicPartition
    span : (int, int)
        The offset that comes next, and the first that is there.
    default : str, timedelta or None
        What `default_reset` gives.
    stateful : bool
        Whether stores hold what follows from the records: they would lack some and look complete.

    Raises
    ------
    LogError
        When the user has not decided that the records may be missing, and state depends on them; or wants an error.
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
    """Whether records of a topic that were deleted before they were read are left out: else they are an error."""
    decided = _decided(sub_topology, topic, default)
    return not stateful if decided is None else decided != "none"


def _decided(sub_topology: SubTopology, topic: str, default: Reset | None) -> Reset | None:
    """What the user says of a topic; None: nothing, as of internal topics, which no source names so."""
    source = reader_of(sub_topology.sources, topic)
    if source is None or source.offset_reset is not None:
        return None if source is None else source.offset_reset
    return default


def first_offset(source: TopicPartition, reset: Reset, admin: Admin, consumer: Consumer, now_ms: int) -> int:
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
            f'Nothing is committed for {source}, and offset_reset of its source is "none": commit where to begin, or '
            'choose "earliest", "latest" or a duration.'
        )
    if reset == "latest":
        return admin.end_offsets([source], committed_only=False)[source]
    return admin.beginning_offsets([source])[source]
