"""Where a task begins to read: at its committed offsets, else where its sources say."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kstreams.batch import TopicPartition
from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.errors import LogError
from kstreams.log.api import Admin, Consumer, OffsetAndMetadata
from kstreams.processor.beginnings import first_offset, reset_of
from kstreams.processor.layout import TaskPlan
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
    found = {}
    for source in plan.inputs:
        if source in committed and _checked(source, committed[source].offset, begins[source], ends[source]):
            found[source] = committed[source].offset
        else:
            reset = reset_of(plan.sub_topology, source.topic, config)
            found[source] = first_offset(source, reset, admin, consumer, clock.now_ms())
    return found


def committed_memo(plan: TaskPlan, committed: Offsets) -> dict[str, int]:
    """The memo that was committed with the offsets of a task; empty at first."""
    for source in plan.inputs:
        if source in committed and committed[source].metadata:
            return decode_memo(committed[source].metadata)
    return {}


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
