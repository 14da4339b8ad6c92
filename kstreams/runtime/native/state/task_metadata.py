"""Task metadata: what a task keeps with its committed offsets, so that a restart changes no decision about time.

Kafka takes 4,096 bytes with an offset. What is more than that stands with further offsets that the task commits: those
at which its changelogs end. All of them are committed as one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kstreams.errors import LogFormatError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import OffsetAndMetadata
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.topics import changelog_topic

_VERSION = 2
_MOST_BYTES = 3_900  # of all entries of a text
ENDED = "end_of_input"
"""Whether the end of bounded input was processed, and nothing since."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def encode_task_metadata(metadata: Mapping[str, int], places: int = 1) -> list[str]:
    """The texts that are committed with offsets: one, or several where Kafka would not take one.

    The first goes with an input, the others with the changelogs of the task, in their order. If there are too few, the
    last text is as long as it must be.

    Examples
    --------
    >>> encode_task_metadata({"stream_time": 5})
    ['{"v":1,"memo":{"stream_time":5}}']
    """
    parts: list[dict[str, int]] = [{}]
    size = 0
    for name, value in metadata.items():
        size += len(_json({name: value}).encode())
        if size > _MOST_BYTES and parts[-1] and len(parts) < places:
            parts.append({})
            size = len(_json({name: value}).encode())
        parts[-1][name] = value
    if len(parts) == 1:
        return [_json({"v": 1, "memo": parts[0]})]
    return [_json({"v": 2, "parts": len(parts), "memo": part}) for part in parts]


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def with_task_metadata(
    offsets: Mapping[TopicPartition, int],
    metadata: Mapping[str, int],
    changelogs: Mapping[str, TopicPartition],
    ends: Mapping[str, int | None],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What to commit for a task: its metadata goes with the first of its inputs, and with changelogs.

    Parameters
    ----------
    offsets : mapping of TopicPartition to int
        Of its inputs, that of the first one first.
    metadata : mapping of str to int
    changelogs : mapping of str to TopicPartition
        As `changelogs_of` gives them.
    ends : mapping of str to int or None
        Where these end, by store.
    """
    text, *further_texts = encode_task_metadata(metadata, 1 + len(changelogs))
    with_inputs = {
        source: OffsetAndMetadata(offset, "" if at else text) for at, (source, offset) in enumerate(offsets.items())
    }
    with_changelogs = {
        changelog: OffsetAndMetadata(ends.get(store) or 0, other)
        for (store, changelog), other in zip(changelogs.items(), further_texts, strict=False)
    }
    return with_inputs | with_changelogs


def committed_task_metadata(plan: TaskPlan, committed: Offsets, application_id: str) -> dict[str, int]:
    """The metadata that was committed with the offsets of a task; empty at first.

    Parameters
    ----------
    plan : TaskPlan
    committed : mapping
        What was committed for its `metadata_places`.
    application_id : str

    Raises
    ------
    LogFormatError
        When a newer version wrote it.
    """
    with_text = (committed[source] for source in plan.inputs if source in committed and committed[source].metadata)
    first = next(with_text, None)
    read = _decoded(first)
    memo = dict(read["memo"])
    for place in list(changelogs_of(plan, application_id).values())[: read.get("parts", 1) - 1]:
        memo |= _decoded(committed.get(place))["memo"]
    return memo


def changelogs_of(plan: TaskPlan, application_id: str) -> dict[str, TopicPartition]:
    """The changelogs of a task by store, in the order of its stores."""
    logged = [store.name for store in plan.sub_topology.stores if store.logging and store.source_topic is None]
    return {name: TopicPartition(changelog_topic(application_id, name), plan.partition) for name in logged}


def metadata_places(plan: TaskPlan, application_id: str) -> list[TopicPartition]:
    """The partitions whose committed offsets may carry metadata of a task: its inputs and its changelogs."""
    return [*plan.inputs, *changelogs_of(plan, application_id).values()]


def _decoded(committed: OffsetAndMetadata | None) -> dict[str, Any]:
    """What a text says; nothing for one that another application committed."""
    if committed is None or not committed.metadata.startswith('{"v":'):
        return {"memo": {}}
    read: dict[str, Any] = json.loads(committed.metadata)
    if read["v"] > _VERSION:
        raise LogFormatError("the committed offsets were written by a newer version of kstreams: use that one")
    return read
