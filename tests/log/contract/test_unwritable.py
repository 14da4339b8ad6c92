"""A record that cannot be written fails alone; what fails is raised, told to callbacks, and never lost in silence."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log import Delivery, Log
from kstreams.log.api import Ability
from tests.log.contract.reading import rows_of, values_of

WORDS = TopicPartition("words", 0)

UNWRITABLE = {
    "a time after the last of 64 bits": {"timestamp": 2**63},
    "a time before the first of 64 bits": {"timestamp": -(2**63) - 1},
    "a header whose name no UTF-8 spells": {"headers": [("\ud800", b"x")]},
}


@pytest.mark.parametrize("wrong", UNWRITABLE.values(), ids=UNWRITABLE)
@pytest.mark.parametrize("linger_ms", [-1, 1])
def test_a_record_that_no_log_can_hold_is_refused_when_it_is_sent(log: Log, wrong: Any, linger_ms: int) -> None:
    log.admin().create_topic("words")
    told: list[Delivery] = []
    with log.producer({"linger.ms": linger_ms}) as producer:
        for i in range(201):
            if i == 100:
                with pytest.raises(LogError):
                    producer.send("words", b"k", b"wrong", on_delivery=told.append, **wrong)
            else:
                producer.send("words", b"k", b"%d" % i, on_delivery=told.append)
        producer.flush()
        assert [delivery.offset for delivery in told] == list(range(200))
    assert values_of(log, "words") == [b"%d" % i for i in range(201) if i != 100]


@pytest.mark.needs(Ability.TIME_ZERO)
def test_times_at_the_ends_of_64_bits_are_kept(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer() as producer:
        for time in (-(2**63), 2**63 - 1):
            producer.send("words", b"k", b"v", timestamp=time)
    assert [row.timestamp for row in rows_of(log, "words")] == [-(2**63), 2**63 - 1]


def test_a_batch_whose_columns_no_log_can_hold_fails_alone(log: Log) -> None:
    log.admin().create_topic("words")
    told: list[bool] = []
    keys = pa.array([b"k"])
    no_time = Batch(WORDS, np.arange(1), keys, keys, pa.array([None], pa.int64()))
    no_binary = Batch(WORDS, np.arange(1), pa.array([{"a": 1}]), keys, pa.array([1]))
    with log.producer({"linger.ms": -1}) as producer:
        assert producer.refused(no_time).keys() == {0}
        for batch in (None, no_time, None, no_binary, None):
            sound = Batch.of_rows(WORDS, [Row(b"k", b"v", 1, ())])
            producer.send_batch(sound if batch is None else batch, lambda d: told.append(d.error is None))
        with pytest.raises(LogError, match="cannot be written"):
            producer.flush()
    assert told == [True, False, True, False, True]
    assert len(values_of(log, "words")) == 3


def test_rows_that_are_too_large_are_found_without_a_look_at_each_row(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.admin().create_topic("words", config={"max.message.bytes": "20000"})
    values: list[bytes] = [b"v"] * 20_000
    values[7] = values[19_999] = b"v" * 20_000
    keys = pa.array([b"k"] * len(values))
    batch = Batch(WORDS, np.arange(len(values)), keys, pa.array(values), pa.array(range(1, len(values) + 1)))
    slices = []
    cut = Batch.slice

    def counted(self: Batch, start: int, end: int) -> Batch:
        slices.append((start, end))
        return cut(self, start, end)

    monkeypatch.setattr(Batch, "slice", counted)
    with log.producer() as producer:
        assert producer.refused(batch).keys() == {7, 19_999}
    assert len(slices) < len(values) / 10


def test_a_callback_that_raises_keeps_no_other_from_being_called(log: Log) -> None:
    log.admin().create_topic("words")
    told: list[int] = []

    def tell(delivery: Delivery) -> None:
        told.append(delivery.offset)
        if delivery.offset == 1:
            raise RuntimeError("not today")

    producer = log.producer({"linger.ms": -1})
    for _ in range(4):
        producer.send("words", b"k", b"v", on_delivery=tell)
    with pytest.raises(RuntimeError, match="not today"):
        producer.flush()
    producer.close()
    assert told == [0, 1, 2, 3]


def test_a_partition_is_a_whole_number(log: Log) -> None:
    log.admin().create_topic("words", partitions=2)
    with log.producer() as producer:
        for wrong in (1.5, "1"):
            with pytest.raises(TypeError):
                producer.send("words", b"k", b"v", partition=wrong)  # type: ignore[arg-type]
        producer.send("words", b"k", b"v", partition=1)
    assert values_of(log, "words", 2) == [b"v"]
