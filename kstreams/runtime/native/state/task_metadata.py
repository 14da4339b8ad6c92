"""Task metadata: the times of a task, committed with its offsets, so that a restart changes no decision about time.

Kafka accepts 4,096 bytes of metadata with an offset. Further metadata is committed with the end offsets of the task's
changelogs, in the same commit.
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
_MOST_BYTES = 3_900  # the size of the entries of one text
_CHANGELOG_END = "changelog:"
ENDED = "end_of_input"
"""The entry that is 1 if the end of bounded input was processed, and no record since."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def encode_task_metadata(metadata: Mapping[str, int], places: int = 1) -> list[str]:
    """Return the texts to commit with offsets: one, or several if one is too long for Kafka.

    The first is committed with an input, and the others with the changelogs of the task, in their order. If there are
    too few changelogs, the last text is longer.

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
    """Return the commit of a task. Its metadata is committed with the first input, and with changelogs.

    Parameters
    ----------
    offsets : mapping of TopicPartition to int
        The offsets of the inputs, beginning with the first input.
    metadata : mapping of str to int
    changelogs : mapping of str to TopicPartition
        The result of `changelogs_of`.
    ends : mapping of str to int or None
        The end offsets of the changelogs, by store.
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
    """Return the metadata that was committed with the offsets of a task, empty before the first commit.

    Parameters
    ----------
    plan : TaskPlan
    committed : mapping
        The committed offsets of its `metadata_places`.
    application_id : str

    Raises
    ------
    LogFormatError
        If a newer version of kstreams wrote it.
    """
    with_text = (committed[source] for source in plan.inputs if source in committed and committed[source].metadata)
    first = next(with_text, None)
    read = _decoded(first)
    memo = dict(read["memo"])
    for place in list(changelogs_of(plan, application_id).values())[: read.get("parts", 1) - 1]:
        memo |= _decoded(committed.get(place))["memo"]
    return memo


def changelogs_of(plan: TaskPlan, application_id: str) -> dict[str, TopicPartition]:
    """Return the changelogs of a task by store, in the order of its stores."""
    logged = [store.name for store in plan.sub_topology.stores if store.logging and store.source_topic is None]
    return {name: TopicPartition(changelog_topic(application_id, name), plan.partition) for name in logged}


def metadata_places(plan: TaskPlan, application_id: str) -> list[TopicPartition]:
    """Return the partitions whose committed offsets may have metadata of a task: its inputs and changelogs."""
    return [*plan.inputs, *changelogs_of(plan, application_id).values()]


def _decoded(committed: OffsetAndMetadata | None) -> dict[str, Any]:
    """Decode a text. A text of another application has no entries."""
    if committed is None or not committed.metadata.startswith('{"v":'):
        return {"memo": {}}
    read: dict[str, Any] = json.loads(committed.metadata)
    if read["v"] > _VERSION:
        raise LogFormatError("the committed offsets were written by a newer version of kstreams: use that one")
    return read


def encode_changelog_ends(ends: Mapping[str, int]) -> dict[str, int]:
    """Return the entries of the task metadata for the end offsets of changelogs, by store.

    Examples
    --------
    >>> encode_changelog_ends({"counts": 7}), decode_changelog_ends({"changelog:counts": 7, "stream_time": 3})
    ({'changelog:counts': 7}, {'counts': 7})
    """
    return {f"{_CHANGELOG_END}{store}": end for store, end in ends.items()}


def decode_changelog_ends(metadata: Mapping[str, int]) -> dict[str, int]:
    """Return the end offsets that `encode_changelog_ends` has encoded."""
    return {name.removeprefix(_CHANGELOG_END): end for name, end in metadata.items() if name.startswith(_CHANGELOG_END)}
