"""What a mirror copies: the same topics, partitions, records and settings, once each."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kstreams.errors import UnknownTopicError, UnsupportedError
from kstreams.kernel.batch import TopicPartition
from kstreams.mirror import NameFilter
from kstreams.mirror.copied_topics import CopiedTopics
from tests.mirror.ends import EAST_TO_WEST, Ends, numbered, row, wait_until


def test_records_keep_partition_order_key_value_timestamp_and_headers_byte_for_byte(ends: Ends) -> None:
    ends.east.create("orders", 3)
    rows = [
        row(b"v", b"k", 1),
        row(None, b"tombstone"),
        row(b"", b""),
        row(b"no key", None),
        row(b"\x00\xff\xfe", b"\x00\x80"),
        row(b"h", headers=[("a", b"1"), ("a", b"\xff\x00"), ("", None), ("ü", b""), ("z", b"1" * 1_000)]),
    ]
    ends.east.write("orders", *rows, partition=1)
    ends.east.write("orders", *reversed(rows), partition=2)
    ends.copy()
    assert ends.west.rows("east.orders") == {0: [], 1: rows, 2: rows[::-1]}


def test_a_second_copy_adds_only_what_is_new(ends: Ends) -> None:
    ends.east.create("orders", 2)
    for start in range(0, 300, 100):
        ends.east.write("orders", *numbered(100, start), partition=1)
        ends.copy()
    assert ends.west.rows("east.orders") == {0: [], 1: numbered(300)}


def test_records_of_aborted_and_open_transactions_are_not_copied(ends: Ends) -> None:
    ends.east.create("orders")
    with ends.east.log.producer({"transactional.id": "shop"}) as producer:
        for number, is_committed in enumerate((True, False, True, False)):
            producer.begin_transaction()
            producer.send("orders", b"k", str(number).encode(), timestamp=1_000)
            producer.flush()
            producer.commit_transaction() if is_committed else producer.abort_transaction()
        producer.begin_transaction()
        producer.send("orders", b"k", b"open", timestamp=1_000)
        producer.flush()
        ends.copy()
        assert [each.value for each in ends.west.rows("east.orders")[0]] == [b"0", b"2"]
        producer.commit_transaction()
    wait_until(lambda: len(ends.east.rows("orders")[0]) == 3)
    ends.copy()
    assert [each.value for each in ends.west.rows("east.orders")[0]] == [b"0", b"2", b"open"]


def test_settings_are_those_of_the_topic(ends: Ends) -> None:
    ends.east.create("prices", cleanup_policy="compact", min_compaction_lag_ms="777")
    ends.copy()
    config = ends.west.config("east.prices")
    assert (config["cleanup.policy"], config["min.compaction.lag.ms"]) == ("compact", "777")
    ends.east.log.admin().alter_topic("prices", {"min.compaction.lag.ms": None, "max.message.bytes": "20000"})
    ends.copy()
    config = ends.west.config("east.prices")
    assert config["max.message.bytes"] == "20000"
    assert config.get("min.compaction.lag.ms", "0") == "0"


def test_new_topics_partitions_and_settings_are_noticed_while_it_runs(ends: Ends) -> None:
    ends.east.create("orders")
    with ends.mirrored():
        wait_until(lambda: "east.orders" in ends.west.topics())
        ends.east.create("payments")
        ends.east.log.admin().add_partitions("orders", 3)
        ends.east.log.admin().alter_topic("orders", {"retention.ms": "987654321000"})
        ends.east.write("payments", *numbered(3))
        ends.east.write("orders", *numbered(3), partition=2)
        wait_until(lambda: "east.payments" in ends.west.topics())
        wait_until(lambda: ends.west.rows("east.payments") == {0: numbered(3)})
        wait_until(lambda: ends.west.rows("east.orders").get(2) == numbered(3))
        wait_until(lambda: ends.west.config("east.orders")["retention.ms"] == "987654321000")


def test_only_selected_topics_are_copied(ends: Ends) -> None:
    for topic in ("orders", "orders-test", "payments", "mm2-configs.x.internal", "north.checkpoints.internal"):
        ends.east.create(topic)
    ends.copy(replace(EAST_TO_WEST, topics=NameFilter(("orders.*,mm2.*,north.*",), (".*-test",))))
    assert {topic for topic in ends.west.topics() if topic.startswith("east.")} == {
        "east.orders",
        "east.checkpoints.internal",
    }


def test_a_topic_that_is_deleted_does_not_stop_the_others(ends: Ends) -> None:
    for topic in ("orders", "payments"):
        ends.east.create(topic)
        ends.east.write(topic, *numbered(3))
    with ends.mirrored():
        wait_until(lambda: {"east.orders", "east.payments"} <= ends.west.topics())
        wait_until(lambda: ends.west.rows("east.orders") == {0: numbered(3)})
        ends.east.log.admin().delete_topic("orders")
        ends.east.write("payments", *numbered(3, 3))
        wait_until(lambda: ends.west.rows("east.payments") == {0: numbered(6)})
    assert ends.west.rows("east.orders") == {0: numbered(3)}
    with pytest.raises(UnknownTopicError):
        ends.east.log.admin().describe_topic("orders")


def test_a_topic_that_is_deleted_in_the_first_round_does_not_end_the_mirror(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("orders", "payments"):
        ends.east.create(topic)
        ends.east.write(topic, *numbered(3))
    refresh = CopiedTopics.refresh

    def refresh_before_it_is_deleted(topics: CopiedTopics) -> object:
        copies = refresh(topics)
        if "orders" in ends.east.topics():
            ends.east.log.admin().delete_topic("orders")
        return copies

    monkeypatch.setattr(CopiedTopics, "refresh", refresh_before_it_is_deleted)
    with ends.mirrored():
        wait_until(lambda: "east.payments" in ends.west.topics())
        wait_until(lambda: ends.west.rows("east.payments") == {0: numbered(3)})


def test_a_topic_that_is_created_again_is_copied_from_its_start(ends: Ends) -> None:
    ends.east.create("orders")
    ends.east.write("orders", *numbered(5))
    ends.copy()
    ends.east.log.admin().delete_topic("orders")
    ends.east.create("orders")
    ends.east.write("orders", *numbered(2, 100))
    ends.copy()
    ends.east.write("orders", *numbered(2, 102))
    ends.copy()
    assert ends.west.rows("east.orders") == {0: [*numbered(5), *numbered(4, 100)]}


def test_a_mirror_shows_what_it_has_copied_and_its_lag(ends: Ends) -> None:
    from kstreams.metrics import catalogue

    ends.east.create("orders")
    ends.east.write("orders", *numbered(50))
    tags = (("source", "east"), ("target", "west"), ("topic", "east.orders"), ("partition", "0"))
    with ends.mirrored() as mirror:
        wait_until(lambda: mirror.metrics().get(catalogue.MIRROR_RECORD_COUNT.tagged(tags)) == 50)
        wait_until(lambda: mirror.metrics()[catalogue.MIRROR_LAG.tagged(tags)] == 0)
        assert int(mirror.metrics()[catalogue.MIRROR_BYTE_COUNT.tagged(tags)]) > 50


def test_positions_survive_the_compaction_of_the_mirror_s_own_topic(ends: Ends) -> None:
    if ends.west.is_kafka:
        pytest.skip("brokers compact when they choose")
    ends.east.create("orders", 2)
    for start in range(0, 30, 10):
        ends.east.write("orders", *numbered(10, start))
        ends.copy()
        ends.west.home.files.compact(["mm2-kstreams-offset-syncs.east.internal"])  # type: ignore[union-attr]
    assert ends.west.rows("east.orders")[0] == numbered(30)
    own = TopicPartition("mm2-kstreams-offset-syncs.east.internal", 0)
    assert len(ends.west.rows(own.topic)[0]) == 1


def test_a_record_that_the_copy_cannot_have_is_named(ends: Ends) -> None:
    ends.east.create("prices")
    ends.east.write("prices", *numbered(3), row(b"no key", None))
    ends.east.log.admin().alter_topic("prices", {"cleanup.policy": "compact"})
    with pytest.raises(UnsupportedError, match=r"prices-0@3 cannot be copied: .* no key"):
        ends.copy()


def test_a_time_that_kafka_cannot_write_is_named(ends: Ends) -> None:
    if ends.east.is_kafka or not ends.west.is_kafka:
        pytest.skip("only Kafka's client cannot write the time 0")
    ends.east.create("orders")
    ends.east.write("orders", row(b"v", timestamp=0))
    with pytest.raises(UnsupportedError, match=r"orders-0@0 cannot be copied: .*timestamp 0"):
        ends.copy()


def test_a_mirror_outlives_a_broker(ends: Ends, request: pytest.FixtureRequest) -> None:
    if not ends.west.is_kafka:
        pytest.skip("the embedded log has no broker")
    cluster = request.getfixturevalue("other_kafka")
    ends.east.create("orders")
    ends.east.write("orders", *numbered(100))
    with ends.mirrored():
        wait_until(lambda: "east.orders" in ends.west.topics())
        wait_until(lambda: ends.west.rows("east.orders") == {0: numbered(100)})
        cluster.kill()
        ends.east.write("orders", *numbered(100, 100))
        time.sleep(3)
        cluster.start()
        wait_until(lambda: len(ends.west.rows("east.orders")[0]) >= 200, 120)
    assert ends.west.rows("east.orders") == {0: numbered(200)}
