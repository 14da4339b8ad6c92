"""What is sent is there: keys, values, times, headers, order, partitions, callbacks."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kstreams.errors import ConfigError, LogError, UnknownTopicError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.murmur2 import partition_of
from kstreams.log import Delivery, Log, Producer
from kstreams.log.api import Ability
from tests.log.contract.reading import drain, rows_of, sources, values_of

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=3)


def test_a_record_keeps_key_value_timestamp_and_headers(log: Log) -> None:
    log.admin().create_topic("words")
    headers = (("trace", b"\x00\xff"), ("trace", None), ("empty", b""))
    with log.producer() as producer:
        producer.send("words", b"k", b"v", timestamp=1_234, headers=headers)
        producer.send("words", b"", b"", timestamp=1)
        producer.send("words", b"k", None, timestamp=5)
    assert rows_of(log, "words") == [Row(b"k", b"v", 1_234, headers), Row(b"", b"", 1, ()), Row(b"k", None, 5, ())]


@pytest.mark.needs(Ability.TIME_ZERO)
def test_a_record_keeps_a_time_that_is_none(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        for time in (0, -1):
            producer.send("words", b"k", b"v", timestamp=time)
    assert [row.timestamp for row in rows_of(log, "words")] == [0, -1]


@pytest.mark.needs(Ability.ZERO_IN_HEADERS)
def test_a_record_keeps_the_character_0_in_the_name_of_a_header(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        producer.send("words", b"k", b"v", timestamp=1, headers=(("a\0b", b"x"),))
    assert rows_of(log, "words")[0].headers == (("a\0b", b"x"),)


def test_a_record_without_timestamp_gets_the_time_of_sending(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        producer.send("words", b"k", b"v")
    assert rows_of(log, "words")[0].timestamp > 1_700_000_000_000


def test_the_partition_is_murmur2_of_the_key_unless_it_is_given(log: Log) -> None:
    log.admin().create_topic("words", partitions=5)
    keys = [b"k%d" % i for i in range(100)]
    with log.producer() as producer:
        for key in keys:
            producer.send("words", key, b"by key")
        producer.send("words", b"k1", b"given", partition=4)
    for partition in range(5):
        with log.consumer() as consumer:
            consumer.assign([TopicPartition("words", partition)])
            consumer.seek_to_beginning()
            rows = drain(consumer)
        assert [row.key for row in rows if row.value == b"by key"] == [
            k for k in keys if partition_of(k, 5) == partition
        ]
        assert any(row.value == b"given" for row in rows) == (partition == 4)


def test_records_without_key_are_spread_over_the_partitions(log: Log) -> None:
    log.admin().create_topic("words", partitions=3)
    with log.producer() as producer:
        for i in range(60):
            producer.send("words", None, b"%d" % i)
            producer.flush()
    ends = log.admin().end_offsets(sources("words", 3))
    assert sum(ends.values()) == 60
    assert all(ends.values())


@given(
    rows=st.lists(
        st.builds(
            Row,
            st.none() | st.binary(max_size=9),
            st.none() | st.binary(max_size=9),
            st.integers(1, 2**62),
            st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=3)), max_size=2).map(tuple),
        ),
        max_size=30,
    ),
    as_batch=st.booleans(),
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_sent_comes_back_as_it_was(log: Log, rows: list[Row], as_batch: bool) -> None:
    name = f"t{len(log.admin().topics())}"
    log.admin().create_topic(name)
    with log.producer() as producer:
        if as_batch:
            producer.send_batch(Batch.of_rows(TopicPartition(name, 0), rows))
        else:
            for row in rows:
                producer.send(name, row.key, row.value, timestamp=row.timestamp, headers=row.headers)
    assert rows_of(log, name) == rows


def test_rows_and_batches_for_a_partition_stay_in_the_order_they_were_sent(log: Log) -> None:
    log.admin().create_topic("words")
    source = TopicPartition("words", 0)
    with log.producer() as producer:
        producer.send("words", b"k", b"1")
        producer.send_batch(Batch.of_rows(source, [Row(b"k", b"2", 1, ()), Row(b"k", b"3", 1, ())]))
        producer.send("words", b"k", b"4")
        producer.send_batch(Batch.of_rows(source, [Row(b"k", b"5", 1, (("h", b"x"),))]))
    assert values_of(log, "words") == [b"1", b"2", b"3", b"4", b"5"]


def test_a_slice_of_a_batch_is_written_as_just_that(log: Log) -> None:
    log.admin().create_topic("words")
    rows = [Row(b"k", b"%d" % i, i + 1, (("n", b"%d" % i),)) for i in range(100)]
    with log.producer() as producer:
        producer.send_batch(Batch.of_rows(TopicPartition("words", 0), rows).slice(10, 20))
    assert rows_of(log, "words") == rows[10:20]


def test_a_batch_larger_than_a_message_is_cut_into_several(log: Log) -> None:
    log.admin().create_topic("words", config={"max.message.bytes": "2000"})
    rows = [Row(b"k", b"x" * 50, i + 1, ()) for i in range(500)]
    told: list[Delivery] = []
    with log.producer() as producer:
        producer.send_batch(Batch.of_rows(TopicPartition("words", 0), rows), told.append)
    assert rows_of(log, "words") == rows
    assert told == [Delivery(TopicPartition("words", 0), 0, 500, None)]


def send_now(producer: Producer, *record: object, **more: object) -> None:
    producer.send(*record, **more)
    producer.flush()


def test_a_record_larger_than_max_message_bytes_is_refused_and_the_others_are_not(log: Log) -> None:
    log.admin().create_topic("words", config={"max.message.bytes": "2000"})
    with log.producer() as producer:
        producer.send("words", b"k", b"small")
        with pytest.raises(LogError, match=r"large"):
            send_now(producer, "words", b"k", b"x" * 2000)
        producer.send("words", b"k", b"x" * 1800)
    assert values_of(log, "words") == [b"small", b"x" * 1800]


def test_a_batch_with_a_record_too_large_is_refused_as_a_whole_and_alone(log: Log) -> None:
    log.admin().create_topic("words", config={"max.message.bytes": "2000"})
    told: list[bool] = []
    with log.producer() as producer:
        for size in (10, 5000, 20):
            batch = Batch.of_rows(TopicPartition("words", 0), [Row(b"k", b"x" * size, 1, ()), Row(b"k", b"", 1, ())])
            producer.send_batch(batch, lambda delivery: told.append(delivery.error is None))
        with pytest.raises(LogError, match=r"max\.message\.bytes"):
            producer.flush()
        assert told == [True, False, True]
    assert [len(value or b"") for value in values_of(log, "words")] == [10, 0, 20, 0]


def test_callbacks_come_in_the_order_of_sending_with_the_offsets(log: Log) -> None:
    log.admin().create_topic("words", partitions=3)
    log.admin().create_topic("other")
    told: list[tuple[int, Delivery]] = []
    with log.producer() as producer:
        for i in range(200):
            topic = "other" if i % 7 == 0 else "words"
            producer.send(topic, b"%d" % i, b"v", on_delivery=lambda delivery, i=i: told.append((i, delivery)))
        producer.flush()
        assert [i for i, _ in told] == list(range(200))
    for source in [*sources("words", 3), *sources("other")]:
        offsets = [delivery.offset for _, delivery in told if delivery.source == source]
        assert offsets == list(range(len(offsets)))


def test_a_callback_may_send(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        producer.send("words", b"k", b"1", on_delivery=lambda _: producer.send("words", b"k", b"2"))
        producer.flush()
    assert values_of(log, "words") == [b"1", b"2"]


def test_a_record_that_nobody_flushes_arrives_after_linger(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer({"linger.ms": 1}) as producer, log.consumer() as consumer:
        consumer.assign(sources("words"))
        consumer.seek_to_beginning()
        producer.send("words", b"k", b"v")
        assert [row.value for batch in consumer.poll(timeout=30) for row in batch.rows()] == [b"v"]


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("where", ["topic", "producer"])
def test_compressed_topics_read_the_same(log: Log, compression: str, where: str) -> None:
    setting = {"compression.type": compression}
    log.admin().create_topic("words", config=setting if where == "topic" else None)
    rows = [Row(b"key", b"value" * 20, i + 1, (("h", b"x"),) if i % 3 else ()) for i in range(1000)]
    with log.producer(setting if where == "producer" else None) as producer:
        producer.send_batch(Batch.of_rows(TopicPartition("words", 0), rows))
    assert rows_of(log, "words") == rows


def test_columns_of_strings_are_taken_as_bytes(log: Log) -> None:
    log.admin().create_topic("words")
    texts = pa.array(["a", None, "ü"])
    batch = Batch(TopicPartition("words", 0), np.arange(3), texts, texts, pa.array([1, 2, 3]))
    with log.producer() as producer:
        producer.send_batch(batch)
    assert [row.value for row in rows_of(log, "words")] == [b"a", None, "ü".encode()]


def test_a_compacted_topic_refuses_records_without_key(log: Log) -> None:
    log.admin().create_topic("table", config={"cleanup.policy": "compact"})
    with log.producer() as producer, pytest.raises(LogError, match="key"):
        send_now(producer, "table", None, b"v")


def test_an_unknown_topic_or_partition_is_named_when_sending(log: Log) -> None:
    log.admin().create_topic("flights", partitions=2)
    with log.producer() as producer:
        with pytest.raises(UnknownTopicError, match="'flights'"):
            producer.send("flight", b"k", b"v")
        with pytest.raises(UnknownTopicError, match="0 to 1"):
            producer.send("flights", b"k", b"v", partition=2)


def test_an_unknown_setting_is_refused_with_the_nearest_known(log: Log) -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms"):
        log.producer({"linger": 5})
    with pytest.raises(ConfigError, match=r"isolation\.level"):
        log.consumer({"isolation.level": "dirty"})


@pytest.mark.needs(Ability.NEW_TOPICS_DIFFER)
def test_a_producer_finds_the_new_topic_when_one_was_deleted_and_made_again(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        producer.send("words", b"k", b"old")
        producer.flush()
        log.admin().delete_topic("words")
        log.admin().create_topic("words")
        producer.send("words", b"k", b"lost")
        with pytest.raises(UnknownTopicError, match="deleted"):
            producer.flush()
        producer.send("words", b"k", b"new")
    assert values_of(log, "words") == [b"new"]


def test_what_is_no_bytes_is_refused_and_leaves_nothing_behind(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        producer.send("words", b"k", b"1")
        for wrong in ({"value": "text"}, {"value": 5}, {"key": "k"}):
            with pytest.raises(LogError, match="bytes"):
                producer.send("words", **{"key": b"k", "value": b"v", **wrong})
        with pytest.raises(LogError, match=r"1\.5 is not a time"):
            producer.send("words", b"k", b"v", timestamp=1.5)  # type: ignore[arg-type]
        short = Batch.of_rows(TopicPartition("words", 0), [Row(b"k", b"v", 1, ())] * 3)
        short.values = short.values.slice(1)
        producer.send_batch(short)
        with pytest.raises(LogError, match="cannot be written"):
            producer.flush()
        producer.send("words", b"k", b"2")
    assert values_of(log, "words") == [b"1", b"2"]


def test_a_closed_producer_refuses_records(log: Log) -> None:
    log.admin().create_topic("words")
    producer = log.producer()
    producer.close()
    producer.close()
    with pytest.raises(LogError, match="closed"):
        producer.send("words", b"k", b"v")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), min_size=1, max_size=8))
def test_the_rows_that_a_topic_refuses_are_known_beforehand(log: Log, rows: list[tuple[bool, int]]) -> None:
    """What is left of a batch without them is taken, and each of them alone is not."""
    name = f"words-{len(log.admin().topics())}"
    log.admin().create_topic(name, config={"max.message.bytes": "2000", "cleanup.policy": "compact"})
    source = TopicPartition(name, 0)
    batch = Batch.of_rows(source, [Row(b"k" if keyed else None, b"x" * size, 1, ()) for keyed, size in rows])
    with log.producer() as producer:
        refused = producer.refused(batch)
        producer.send_batch(batch.filter(np.array([row not in refused for row in range(len(batch))])))
        producer.flush()
        for row in refused:
            producer.send_batch(batch.slice(row, row + 1))
            with pytest.raises(LogError):
                producer.flush()
    assert len(rows_of(log, name)) == len(rows) - len(refused)


def test_what_is_not_on_its_way_when_a_producer_is_abandoned_never_lands(log: Log) -> None:
    log.admin().create_topic("words")
    reported: list[LogError | None] = []
    producer = log.producer({"linger.ms": 60_000})
    producer.send("words", None, b"written")
    producer.flush()
    producer.send("words", None, b"dropped", on_delivery=lambda delivery: reported.append(delivery.error))
    producer.abandon()
    producer.close()
    assert values_of(log, "words") == [b"written"]
    assert [isinstance(error, LogError) for error in reported] == [True]
