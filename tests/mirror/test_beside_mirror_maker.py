"""Beside a real MirrorMaker 2 that copies the same cluster: the same topics and records, and what is better here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kstreams.log import home_at
from kstreams.mirror import NameFilter
from tests.mirror.ends import EAST_TO_WEST, End, Ends, numbered, row, wait_until
from tests.mirror.test_internal_topics import checkpoint
from tests.support.kafka_topics import delete_everything
from tests.support.mirror_maker import MirrorMaker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

OURS = replace(EAST_TO_WEST, topics=NameFilter(("orders.*",)))
GROUP_OFFSETS = {f"app-{offset}": offset for offset in (0, 1, 57, 321, 499, 500, 777, 1_000)}


@pytest.fixture(scope="module")
def beside(kafka, other_kafka) -> Iterator[Ends]:
    """Two clusters, between which both mirrors run: theirs writes A.*, ours writes east.*."""
    clusters = []
    for cluster in (kafka, other_kafka):
        delete_everything(cluster.bootstrap_servers)
        clusters.append(home_at(f"kafka:{cluster.bootstrap_servers}"))
    source, target = clusters
    theirs = MirrorMaker(kafka.bootstrap_servers, other_kafka.bootstrap_servers, topics="orders.*", groups="app.*")
    with source.open() as source_log, target.open() as target_log, theirs:
        ends = Ends(End(source, source_log), End(target, target_log))
        with ends.mirrored(OURS):
            yield ends


def both(ends: Ends, topic: str, count: int) -> tuple[dict, dict]:
    """The records of both copies of a topic, when each has at least so many."""
    copies = []
    for copy in (f"A.{topic}", f"east.{topic}"):
        wait_until(lambda copy=copy: copy in ends.west.topics())
        wait_until(lambda copy=copy: sum(map(len, ends.west.rows(copy).values())) >= count)
        copies.append(ends.west.rows(copy))
    return copies[0], copies[1]


def next_values(end: End, topic: str, offset: int) -> list[bytes | None]:
    return [each.value for at, each in end.placed(topic)[0] if at >= offset]


def test_both_copy_the_same_records_to_topics_with_the_same_settings(beside: Ends) -> None:
    beside.east.create("orders-all", 3, cleanup_policy="compact,delete", segment_ms="3600000")
    rows = [
        row(b"v", headers=[("a", b"1"), ("a", b"\xff\x00"), ("none", None), ("empty", b"")]),
        row(None, b"tombstone"),
        row(b"", b"", 7),
        *numbered(200),
    ]
    for partition in (0, 2):
        beside.east.write("orders-all", *rows, partition=partition)
    theirs, ours = both(beside, "orders-all", 2 * len(rows))
    assert ours == theirs == {0: rows, 1: [], 2: rows}
    assert beside.west.config("east.orders-all") == beside.west.config("A.orders-all")


def test_both_notice_new_topics_and_leave_internal_ones_out(beside: Ends) -> None:
    for topic in ("orders-new", "orders-empty", "other"):
        beside.east.create(topic)
    beside.east.write("orders-new", *numbered(1))
    both(beside, "orders-new", 1)
    both(beside, "orders-empty", 0)
    copies = {
        alias: {topic.removeprefix(alias) for topic in beside.west.topics() if topic.startswith(f"{alias}orders")}
        for alias in ("A.", "east.")
    }
    assert copies["A."] == copies["east."]


def test_offsets_of_groups_skip_nothing_and_repeat_less(beside: Ends) -> None:
    beside.east.create("orders")
    for start in range(0, 1_000, 250):
        beside.east.write("orders", *numbered(250, start))
    both(beside, "orders", 1_000)
    for group, offset in GROUP_OFFSETS.items():
        beside.east.commit(group, "orders", offset)
    wait_until(lambda: all(beside.west.committed(group, "east.orders") is not None for group in GROUP_OFFSETS))
    wait_until(lambda: beside.west.committed("app-1000", "A.orders") is not None)
    repeated = {"A.orders": 0, "east.orders": 0}
    for group, offset in GROUP_OFFSETS.items():
        expected = next_values(beside.east, "orders", offset)
        for copy in repeated:
            values = next_values(beside.west, copy, beside.west.committed(group, copy) or 0)
            assert values[len(values) - len(expected) :] == expected, (copy, offset)
            repeated[copy] += len(values) - len(expected)
    print("repeated records", repeated)
    assert repeated["east.orders"] == 0
    assert repeated["A.orders"] > 0


def test_checkpoints_and_heartbeats_of_both_are_read_alike(beside: Ends) -> None:
    beside.east.create("orders-checked")
    beside.east.write("orders-checked", *numbered(20))
    both(beside, "orders-checked", 20)
    beside.east.commit("app-checked", "orders-checked", 20)
    decoded = {}
    for alias in ("A", "east"):
        topic = f"{alias}.checkpoints.internal"

        def checkpoints(topic: str = topic) -> list[tuple[str, str, int, int, int, str]]:
            rows = beside.west.rows(topic)[0] if topic in beside.west.topics() else []
            return [checkpoint(each.key or b"", each.value or b"") for each in rows]

        wait_until(lambda read=checkpoints: any(each[0] == "app-checked" for each in read()))
        decoded[alias] = [each[1:5] for each in checkpoints() if each[0] == "app-checked"][-1]
    assert decoded["A"] == ("A.orders-checked", 0, 20, 20)
    assert decoded["east"] == ("east.orders-checked", 0, 20, decoded["east"][3])
    assert next_values(beside.west, "east.orders-checked", decoded["east"][3]) == []
    heartbeats = {each.key for each in beside.west.rows("heartbeats")[0]}
    assert heartbeats == {b"\x00\x01A\x00\x01B", b"\x00\x04east\x00\x04west"}


def test_aborted_transactions_are_copied_by_theirs_and_not_by_ours(beside: Ends) -> None:
    beside.east.create("orders-aborted")
    with beside.east.log.producer({"transactional.id": "shop"}) as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send("orders-aborted", b"k", str(number).encode(), timestamp=1_000)
            producer.flush()
            producer.abort_transaction() if number % 2 else producer.commit_transaction()
    theirs, ours = both(beside, "orders-aborted", 3)
    wait_until(lambda: len(beside.west.rows("A.orders-aborted")[0]) == 6)
    assert [each.value for each in ours[0]] == [b"0", b"2", b"4"]
    assert theirs != ours
