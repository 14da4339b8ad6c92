"""Skimming: what lies ahead, counted and timed as reading it would tell."""

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from kstreams.log.api import Ability, Consumer, Span
from tests.log.contract.reading import drain, sources

WORDS = TopicPartition("words", 0)
TIMES = [7 * i % 100 + i + 1 for i in range(1_000)]


@pytest.fixture
def words(log: Log) -> Log:
    """A topic with 1,000 records whose times are out of order, written a few or many at a time."""
    log.admin().create_topic("words")
    with log.producer() as producer:
        for i, time in enumerate(TIMES):
            producer.send("words", b"k", b"%d" % i, timestamp=time)
            if i < 20 or i % 100 == 0:
                producer.flush()
    return log


def skimmed(consumer: Consumer, end: int) -> list[Span]:
    return list(iter(lambda: consumer.skim(WORDS, end), None))


@pytest.mark.parametrize(("start", "end"), [(0, 1_000), (0, 5_000), (3, 7), (19, 555), (101, 102), (350, 999), (7, 7)])
def test_spans_tell_of_every_record_between_two_offsets(words: Log, start: int, end: int) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        consumer.seek(WORDS, start)
        spans = skimmed(consumer, end)
        stop = min(end, 1_000)
        assert consumer.position(WORDS) == stop
    for span, before in zip(spans, [start, *(span.end for span in spans)], strict=False):
        assert span == Span(before, span.end, span.end - before, max(TIMES[before : span.end]))
    assert sum(span.records for span in spans) == stop - start


def test_polling_and_skimming_take_turns(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign([WORDS])
        at = 0
        while at < 1_000:
            if batches := consumer.poll(10, max_records=13):
                assert next(row.value for batch in batches for row in batch.rows()) == b"%d" % at
                span = consumer.skim(WORDS, consumer.position(WORDS) + 29)
                at = consumer.position(WORDS)
                assert span is None or (span.end == at and span.latest_ms == max(TIMES[span.start : at]))


@pytest.mark.needs(Ability.FRAMES)
def test_aborted_and_hidden_records_do_not_count(log: Log) -> None:
    log.admin().create_topic("words")
    with log.producer({"transactional.id": "app"}) as producer, log.consumer() as consumer:
        for i, time in enumerate((5, 99, 3, 77, 4)):
            producer.begin_transaction()
            producer.send("words", b"k", b"%d" % i, timestamp=time)
            producer.flush()
            if i == 4:
                break
            producer.abort_transaction() if i % 2 else producer.commit_transaction()
        consumer.assign([WORDS])
        assert [(span.records, span.latest_ms) for span in skimmed(consumer, 5)] == [(1, 5), (1, 3)]
        assert consumer.position(WORDS) == 4
        producer.commit_transaction()
        assert skimmed(consumer, 5) == [Span(4, 5, 1, 4)]


def test_skimming_goes_on_behind_what_was_deleted(words: Log) -> None:
    with words.consumer() as consumer:
        consumer.assign(sources("words"))
        consumer.seek(WORDS, 2)
        words.admin().delete_records({WORDS: 150})
        spans = skimmed(consumer, 1_000)
        assert spans[0].start == 150
        assert sum(span.records for span in spans) == 850
        consumer.seek(WORDS, 150)
        assert len(drain(consumer)) == 850
