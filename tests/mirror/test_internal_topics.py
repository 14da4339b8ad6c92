"""Heartbeats and checkpoints have the bytes of MirrorMaker 2, so that its tools read them."""

from __future__ import annotations

import struct

from tests.mirror.ends import Ends, numbered, wait_until


def strings(data: bytes, count: int) -> tuple[list[str], bytes]:
    texts = []
    for _ in range(count):  # int16 length, UTF-8
        size = struct.unpack_from(">h", data)[0]
        texts.append(data[2 : 2 + size].decode())
        data = data[2 + size :]
    return texts, data


def checkpoint(key: bytes, value: bytes) -> tuple[str, str, int, int, int, str]:
    (group, topic), rest = strings(key, 2)
    version, upstream, downstream = struct.unpack_from(">hqq", value)
    assert version == 0
    return group, topic, struct.unpack(">i", rest)[0], upstream, downstream, strings(value[18:], 1)[0][0]


def test_heartbeats_name_both_aliases(ends: Ends) -> None:
    with ends.mirrored():
        wait_until(lambda: "heartbeats" in ends.west.topics() and len(ends.west.rows("heartbeats")[0]) > 2)
    rows = ends.west.rows("heartbeats")[0]
    assert strings(rows[0].key or b"", 2) == (["east", "west"], b"")
    version, at = struct.unpack(">hq", rows[0].value or b"")
    assert version == 0
    assert abs(rows[0].timestamp - at) < 10_000
    assert ends.west.config("heartbeats")["cleanup.policy"] == "compact"


def test_checkpoints_tell_both_offsets(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(10))
    ends.east.commit("app", "orders", 7)
    ends.copy()
    ends.copy()
    rows = ends.west.rows("east.checkpoints.internal")[0]
    assert [checkpoint(row.key or b"", row.value or b"") for row in rows] == [("app", "east.orders", 0, 7, 7, "")]
