"""The offsets of groups in the target: the same record is next on both sides."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from kstreams.kernel.batch import TopicPartition
from tests.mirror.ends import Ends, numbered, row, wait_until


def next_values(end, topic: str, offset: int) -> list[bytes | None]:
    """The values that a group with this offset would read."""
    return [row.value for at, row in end.placed(topic)[0] if at >= offset]


def test_every_offset_is_translated_to_the_same_record(ends: Ends) -> None:
    ends.east.create("orders")
    chance = random.Random(7)
    with ends.east.log.producer({"transactional.id": "shop"}) as producer:
        for number in range(40):
            producer.begin_transaction()
            for _ in range(chance.randrange(1, 4)):
                producer.send("orders", b"k", str(number).encode(), timestamp=1_000)
            producer.flush()
            producer.abort_transaction() if number % 3 == 0 else producer.commit_transaction()
            if number % 10 == 9:
                ends.copy()
    wait_until(lambda: any(row.value == b"38" for row in ends.east.rows("orders")[0]))
    last = TopicPartition("orders", 0)
    end = ends.east.log.admin().end_offsets([last])[last]
    for offset in range(end + 1):
        ends.east.commit(f"app-{offset}", "orders", offset)
    ends.copy()
    for offset in range(end + 1):
        translated = ends.west.committed(f"app-{offset}", "east.orders")
        assert translated is not None
        expected = next_values(ends.east, "orders", offset)
        assert next_values(ends.west, "east.orders", translated) == expected, offset


def test_a_group_follows_its_offsets_in_the_source_forward_and_back(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(500))
    with ends.mirrored():
        for offset in (321, 499, 500, 17):
            ends.east.commit("app", "orders", offset)
            wait_until(lambda at=offset: ends.west.committed("app", "east.orders") == at)


def test_a_group_that_has_read_in_the_target_is_not_moved_back(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(20))
    ends.east.commit("app", "orders", 5)
    ends.copy()
    ends.west.commit("app", "east.orders", 9)
    ends.east.commit("app", "orders", 7)
    ends.copy()
    assert ends.west.committed("app", "east.orders") == 9
    ends.east.commit("app", "orders", 12)
    ends.copy()
    assert ends.west.committed("app", "east.orders") == 12


def test_a_group_with_members_in_the_target_is_left_alone(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(20))
    ends.copy()
    ends.east.commit("app", "orders", 15)
    with ends.west.log.consumer({"group.id": "app"}) as consumer:
        consumer.subscribe(["east.orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        ends.copy()
        assert ends.west.committed("app", "east.orders") is None
    ends.copy()
    assert ends.west.committed("app", "east.orders") == 15


def test_a_group_waits_at_the_end_for_records_that_are_not_copied_yet(ends: Ends) -> None:
    """Retention in the source is no reason to lose the place."""
    ends.east.create("orders")
    ends.east.write("orders", *numbered(10))
    ends.copy()
    ends.east.log.admin().delete_records({TopicPartition("orders", 0): 6})
    ends.east.write("orders", *numbered(10, 10))
    ends.east.commit("app", "orders", 3)
    ends.copy()
    assert ends.west.committed("app", "east.orders") == 3
    assert [row.value for row in ends.west.rows("east.orders")[0]] == [str(n).encode() for n in range(20)]


def test_offsets_are_translated_downward_where_somebody_else_writes_into_the_copy(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(5))
    ends.copy()
    ends.west.write("east.orders", *numbered(2, 900))
    ends.east.write("orders", *numbered(5, 5))
    ends.copy()
    for offset in range(11):
        ends.east.commit(f"app-{offset}", "orders", offset)
    ends.copy()
    for offset in range(11):
        translated = ends.west.committed(f"app-{offset}", "east.orders")
        assert translated is not None
        skipped = set(next_values(ends.east, "orders", offset)) - set(next_values(ends.west, "east.orders", translated))
        assert not skipped


def test_offsets_in_a_compacted_topic_are_translated_to_the_same_record(ends: Ends) -> None:
    if ends.east.is_kafka:
        pytest.skip("brokers compact when they choose")
    ends.east.create("prices", cleanup_policy="compact")
    chance = random.Random(11)
    rows = [row(str(number).encode(), str(chance.randrange(4_000)).encode()) for number in range(12_000)]
    ends.east.write("prices", *rows)
    ends.east.home.files.compact(["prices"])  # type: ignore[union-attr]
    ends.copy()
    assert ends.west.rows("east.prices") == ends.east.rows("prices")
    placed = ends.east.placed("prices")[0]
    gaps = sum(later - earlier > 1 for (earlier, _), (later, _) in pairwise(placed))
    assert gaps > 1_000, "more than one record of syncs has"
    for offset in (0, 1, *chance.sample(range(12_000), 10), 11_999, 12_000):
        ends.east.commit(f"app-{offset}", "prices", offset)
    ends.copy()
    for group in ends.east.log.admin().groups():
        translated = ends.west.committed(group, "east.prices")
        assert translated is not None
        expected = next_values(ends.east, "prices", int(group.removeprefix("app-")))
        assert next_values(ends.west, "east.prices", translated) == expected
