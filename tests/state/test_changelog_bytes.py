"""The bytes of changelogs: Kafka Streams' own, so that either can take over the other's."""

from __future__ import annotations

from typing import Any

from kstreams.record import ValueAndTimestamp, Window, Windowed
from kstreams.state import StoreBuilder, Stores, open_task_state


def written(builder: StoreBuilder, puts: list[tuple[Any, ...]], timestamp_ms: int = 7) -> list[tuple[Any, ...]]:
    """What `put(*arguments)` for each of `puts` writes: (key, value, timestamp)."""
    state = open_task_state([builder])
    for arguments in puts:
        state.stores[builder.name].put(*arguments)
    changes = state.changes(timestamp_ms)[builder.name]
    return list(zip(*(column.to_pylist() for column in changes), strict=True))


def long(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_a_plain_store_writes_the_time_it_is_told() -> None:
    store = Stores.key_value("s", key=str, value=int)
    assert written(store, [("a", 1), ("b", 2), ("a", 3), ("b", None)]) == [(b"a", long(3), 7), (b"b", None, 7)]


def test_a_timestamped_store_writes_the_plain_value_and_its_own_time() -> None:
    store = Stores.timestamped_key_value("s", key=str, value=int)
    puts = [("a", ValueAndTimestamp(1, 99)), ("b", None)]
    assert written(store, puts) == [(b"a", long(1), 99), (b"b", None, 7)]


def test_a_window_key_is_key_start_and_sequence_number() -> None:
    store = Stores.window("s", 1_000, 10, key=str, value=int)
    assert written(store, [("key", 1, 50)]) == [(b"key" + long(50) + bytes(4), long(1), 50)]
    stamped = Stores.timestamped_window("s", 1_000, 10, key=str, value=int)
    assert written(stamped, [("key", ValueAndTimestamp(1, 58), 50)])[0][2] == 58


def test_duplicates_differ_in_their_sequence_number() -> None:
    store = Stores.window("s", 1_000, 10, key=str, value=int, retain_duplicates=True)
    keys = [row[0] for row in written(store, [("k", 1, 5), ("k", 1, 5), ("k", 1, 6)])]
    assert keys == [b"k" + long(5) + bytes(4), b"k" + long(5) + b"\0\0\0\1", b"k" + long(6) + bytes(4)]


def test_a_session_key_is_key_end_and_start() -> None:
    store = Stores.session("s", 1_000, key=str, value=int)
    puts = [(Windowed("k", Window(5, 9)), 1), (Windowed("k", Window(5, 8)), None)]
    assert written(store, puts) == [(b"k" + long(9) + long(5), long(1), 9), (b"k" + long(8) + long(5), None, 8)]


def version(key: bytes, time: int) -> bytes:
    return key + long(time) + b"\xffks-ver\xff"


def test_a_versioned_store_writes_each_version_under_its_time() -> None:
    """So compaction takes no version for an older state of another one: Kafka Streams' records have the plain key."""
    store = Stores.versioned("s", 1_000, key=str, value=int)
    puts = [("a", 2, 20), ("b", 3, 30), ("a", 1, 10), ("a", None, 25)]
    assert written(store, puts) == [
        (version(b"a", 20), b"\1" + long(2), 20),
        (version(b"b", 30), b"\1" + long(3), 30),
        (version(b"a", 10), b"\1" + long(1), 10),
        (version(b"a", 25), b"\0", 25),
    ]


def test_a_version_that_has_expired_is_deleted() -> None:
    store = Stores.versioned("s", 5, key=str, value=int)
    rows = written(store, [("a", 1, 10), ("a", 2, 20), ("a", None, 21), ("b", 3, 30)])
    assert rows == [
        (b"a", None, 21),
        (version(b"a", 10), None, 10),
        (version(b"a", 20), None, 20),
        (version(b"a", 21), None, 21),
        (version(b"b", 30), b"\1" + long(3), 30),
    ]


def test_a_version_of_the_time_zero_has_a_time_that_kafka_takes() -> None:
    assert written(Stores.versioned("s", 5, key=str, value=int), [("a", 1, 0)])[0][2] == 1


def test_one_record_per_key_and_commit() -> None:
    state = open_task_state([Stores.key_value("s", key=str, value=int)])
    state.stores["s"].put("a", 1)
    assert len(state.changes()["s"]) == 1
    assert state.changes() == {}
