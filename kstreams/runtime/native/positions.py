"""Where a task begins to read: at its committed offsets, else where its sources say."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from kstreams.batch import TopicPartition
from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.durations import to_ms
from kstreams.errors import LogError
from kstreams.log.api import Admin, Consumer, OffsetAndMetadata
from kstreams.offset_reset import offset_reset_of
from kstreams.processor.layout import TaskPlan
from kstreams.processor.topology import SubTopology
from kstreams.runtime.native.memo import decode_memo

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def start_offsets(
    plan: TaskPlan, committed: Offsets, admin: Admin, consumer: Consumer, config: Config, clock: Clock
) -> dict[TopicPartition, int]:
    """The first offset to process of each input.

    Parameters
    ----------
    plan : TaskPlan
    committed : mapping
        What the application committed.
    admin : Admin
    consumer : Consumer
        Finds offsets by time; its assignment is changed.
    config : Config
        `consumer.auto.offset.reset` holds for sources that say nothing.
    clock : Clock
        From whose now durations count back.

    Raises
    ------
    LogError
        When a committed offset lies behind the end of its partition: the topic is not the one it was committed for.
        Or when nothing is committed and the source's `offset_reset` is "none".
    """
    begins = admin.beginning_offsets(plan.inputs)
    ends = admin.end_offsets(plan.inputs, committed_only=False)
    default = config.prefixed("consumer.").get("auto.offset.reset", "earliest")
    found = {}
    for source in plan.inputs:
        asked = _reset(plan.sub_topology, source.topic)
        reset = offset_reset_of(default) if asked is None else asked
        if source in committed and _checked(source, committed[source].offset, begins[source], ends[source]):
            found[source] = committed[source].offset
        elif isinstance(reset, timedelta):
            found[source] = _offset_at(source, clock.now_ms() - to_ms(reset), consumer)
        elif reset == "none":
            raise LogError(_NOWHERE.format(source=source))
        else:
            found[source] = ends[source] if reset == "latest" else begins[source]
    return found


def committed_memo(plan: TaskPlan, committed: Offsets) -> dict[str, int]:
    """The memo that was committed with the offsets of a task; empty at first."""
    for source in plan.inputs:
        if source in committed and committed[source].metadata:
            return decode_memo(committed[source].metadata)
    return {}


_NOWHERE = (
    'Nothing is committed for {source}, or it was deleted, and offset_reset of its source is "none": commit where to '
    'begin, or choose "earliest", "latest" or a duration.'
)


def _reset(sub_topology: SubTopology, topic: str) -> str | timedelta | None:
    """What the source of a topic says; a repartition topic, which no source names so, is read from its beginning."""
    for source in sub_topology.sources:
        if topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic)):
            return source.offset_reset
    return "earliest"


def _offset_at(source: TopicPartition, time_ms: int, consumer: Consumer) -> int:
    consumer.assign([source])
    consumer.seek_to_time(source, time_ms)
    offset = consumer.position(source)
    consumer.assign([])
    return offset


def _checked(source: TopicPartition, offset: int, begin: int, end: int) -> bool:
    """Whether a committed offset can be gone on from."""
    if offset > end:
        raise LogError(
            f"The application has processed {source} up to offset {offset}, but the topic ends at {end}: "
            "it was deleted and created anew. Run once with --reset to start anew."
        )
    if offset < begin:
        logger.warning("%s: the records from offset %d to %d were deleted before they were read", source, offset, begin)
    return offset >= begin
