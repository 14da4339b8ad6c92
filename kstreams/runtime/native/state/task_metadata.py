"""The text kept with a committed offset: a task's memo, so that a restart changes no decision about time."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kstreams.errors import LogFormatError

_VERSION = 1


def encode_task_metadata(memo: Mapping[str, int]) -> str:
    """The metadata of a committed offset.

    Examples
    --------
    >>> encode_task_metadata({"stream_time": 5})
    '{"v":1,"memo":{"stream_time":5}}'
    """
    return json.dumps({"v": _VERSION, "memo": dict(memo)}, separators=(",", ":"))


def decode_task_metadata(metadata: str) -> dict[str, int]:
    """What `encode_task_metadata` was given; empty for metadata that is not ours.

    Raises
    ------
    LogFormatError
        When a newer version wrote it.

    Examples
    --------
    >>> decode_task_metadata(encode_task_metadata({"stream_time": 5})), decode_task_metadata("")
    ({'stream_time': 5}, {})
    """
    if not metadata.startswith('{"v":'):
        return {}
    read = json.loads(metadata)
    if read["v"] > _VERSION:
        raise LogFormatError("the committed offsets were written by a newer version of kstreams: use that one")
    return dict(read["memo"])
