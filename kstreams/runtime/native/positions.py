"""Where a task begins to read: at its committed offsets, else where its sources say."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kstreams.batch import TopicPartition
from kstreams.config import Config
from kstreams.errors import LogError
from kstreams.log.api import Admin, OffsetAndMetadata
from kstreams.processor.layout import TaskPlan
from kstreams.processor.topology import SubTopology
from kstreams.runtime.native.memo import decode_memo

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def start_offsets(plan: TaskPlan, committed: Offsets, admin: Admin, config: Config) -> dict[TopicPartition, int]:
    """The first offset to process of each input.

    Parameters
    ----------
    plan : TaskPlan
    committed : mapping
        What the application committed.
    admin : Admin
    config : Config
        `consumer.auto.offset.reset` holds for sources that say nothing.

    Raises
    ------
    LogError
        When a committed offset lies behind the end of its partition: the topic is not the one it was committed for.
    """
    begins = admin.beginning_offsets(plan.inputs)
    ends = admin.end_offsets(plan.inputs, committed_only=False)
    default = config.prefixed("consumer.").get("auto.offset.reset", "earliest")
    found = {}
    for source in plan.inputs:
        latest = (_reset(plan.sub_topology, source.topic) or default) == "latest"
        if source in committed:
            found[source] = _checked(source, committed[source].offset, begins[source], ends[source])
        else:
            found[source] = ends[source] if latest else begins[source]
    return found


def committed_memo(plan: TaskPlan, committed: Offsets) -> dict[str, int]:
    """The memo that was committed with the offsets of a task; empty at first."""
    for source in plan.inputs:
        if source in committed and committed[source].metadata:
            return decode_memo(committed[source].metadata)
    return {}


def _reset(sub_topology: SubTopology, topic: str) -> str | None:
    return next((source.offset_reset for source in sub_topology.sources if topic in source.topics), None)


def _checked(source: TopicPartition, offset: int, begin: int, end: int) -> int:
    if offset > end:
        raise LogError(
            f"The application has processed {source} up to offset {offset}, but the topic ends at {end}: "
            "it was deleted and created anew. Run once with --reset to start anew."
        )
    if offset < begin:
        logger.warning("%s: the records from offset %d to %d were deleted before they were read", source, offset, begin)
    return max(offset, begin)
