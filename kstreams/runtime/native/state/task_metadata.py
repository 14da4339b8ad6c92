"""Task metadata: what a task keeps with its committed offsets, so that a restart changes no decision about time."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kstreams.batch import TopicPartition
from kstreams.errors import LogFormatError
from kstreams.log.api import OffsetAndMetadata
from kstreams.processor.topology.layout import TaskPlan

_VERSION = 1
ENDED = "end_of_input"
"""Whether the end of bounded input was processed, and nothing since."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def encode_task_metadata(metadata: Mapping[str, int]) -> str:
    """The text that is committed with an offset.

    Examples
    --------
    >>> encode_task_metadata({"stream_time": 5})
    '{"v":1,"memo":{"stream_time":5}}'
    """
    return json.dumps({"v": _VERSION, "memo": dict(metadata)}, separators=(",", ":"))


def decode_task_metadata(text: str) -> dict[str, int]:
    """What `encode_task_metadata` was given; empty for text that another application committed.

    Raises
    ------
    LogFormatError
        When a newer version wrote it.

    Examples
    --------
    >>> decode_task_metadata(encode_task_metadata({"stream_time": 5})), decode_task_metadata("")
    ({'stream_time': 5}, {})
    """
    if not text.startswith('{"v":'):
        return {}
    read = json.loads(text)
    if read["v"] > _VERSION:
        raise LogFormatError("the committed offsets were written by a newer version of kstreams: use that one")
    return dict(read["memo"])


def committed_task_metadata(plan: TaskPlan, committed: Offsets) -> dict[str, int]:
    """The metadata that was committed with the offsets of a task; empty at first."""
    for source in plan.inputs:
        if source in committed and committed[source].metadata:
            return decode_task_metadata(committed[source].metadata)
    return {}
