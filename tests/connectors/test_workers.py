"""Workers write the rows of sources to topics, and topics to sinks, each exactly once."""

from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from kstreams.connectors.connector import SinkConnector
from kstreams.connectors.workers import sink_worker
from kstreams.errors import ConnectorError
from kstreams.kernel.clock import SystemClock
from kstreams.kernel.retry import Retry
from kstreams.testing.connectors import Order, order_of
from tests.connectors.running import (
    LETTERS,
    TOPIC,
    copy_in,
    copy_out,
    ids_in,
    log_with_topics,
    running,
    topic_rows,
    wait_until,
    worker_of,
    worker_to,
)
from tests.connectors.systems import Database, Finite, Numbered, orders, orders_in


def test_a_source_continues_where_it_was_and_goes_through_the_topic_to_a_sink_once(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    with log_with_topics(tmp_path) as log:
        for count in (2_500, 2_500, 4_000):
            copy_in(log, Numbered(count, ["a"]))
            copy_out(log, Database(database))
            assert ids_in(log) == list(range(count))
            assert orders_in(database) == orders(count)


def test_a_split_that_has_ended_is_not_read_again(tmp_path: Path) -> None:
    source = Finite(30, [f"split {number}" for number in range(100)])
    with log_with_topics(tmp_path) as log:
        copy_in(log, source)
        assert ids_in(log) == list(range(3_000))
        assert source.reads == 200  # all rows of a split, and its end


def test_two_processes_share_the_splits_and_the_partitions(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        source = Numbered(3_000, ["a", "b", "c", "d"], batch=100)
        first = [worker_of(log, source), worker_to(log, Database(database), resources)]
        second = [worker_of(log, source), worker_to(log, Database(database), resources)]
        with running(*first, *second):
            wait_until(lambda: all(worker.statuses() for worker in (*first, *second)))
            wait_until(lambda: len(orders_in(database)) >= 12_000)
        assert ids_in(log) == list(range(12_000))
        assert orders_in(database) == orders(12_000)


def test_rows_that_the_target_refuses_become_dead_letters_and_the_others_are_written(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    with log_with_topics(tmp_path) as log:
        copy_in(log, Numbered(100, ["a"]))
        copy_out(log, Database(database, refused=["order 7", "order 60"]), LETTERS)
        assert [order.id for order in orders_in(database)] == [n for n in range(100) if n not in (7, 60)]
        headers = [headers for _, _, headers in topic_rows(log, LETTERS)]
        assert sorted(text["__connect.errors.exception.message"] for text in headers) == [
            b"order 60 is not wanted",
            b"order 7 is not wanted",
        ]
        assert {text["__connect.errors.stage"] for text in headers} == {b"TASK_PUT"}


def test_refused_rows_of_a_commit_of_several_batches_are_read_again_for_their_dead_letters(tmp_path: Path) -> None:
    with log_with_topics(tmp_path, partitions=1) as log:
        copy_in(log, Numbered(60_000, ["a"], batch=10_000))
        copy_out(log, Database(tmp_path / "orders.db", refused=["order 3", "order 54000", "order 59999"]), LETTERS)
        values = [TOPIC.value.deserialize(value) for _, value, _ in topic_rows(log, LETTERS) if value is not None]
        assert values == [order_of(3), order_of(54_000), order_of(59_999)]


def test_values_that_do_not_decode_become_dead_letters(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    with log_with_topics(tmp_path) as log:
        with log.producer() as producer:
            for value in (b'{"id":1,"name":"order 1","amount":1.5}', b"no JSON", b'{"id":"x"}'):
                producer.send("orders", b"\0\0\0\0\0\0\0\1", value, partition=0)
        copy_out(log, Database(database), LETTERS)
        assert orders_in(database) == [Order(1, "order 1", 1.5)]
        letters = topic_rows(log, LETTERS)
        assert [value for _, value, _ in letters] == [b"no JSON", b'{"id":"x"}']
        assert {headers["__connect.errors.stage"] for _, _, headers in letters} == {b"VALUE_CONVERTER"}


def test_without_a_dead_letter_topic_the_error_names_the_record_and_what_to_do(tmp_path: Path) -> None:
    with log_with_topics(tmp_path, partitions=1) as log:
        copy_in(log, Numbered(10, ["a"]))
        with pytest.raises(ConnectorError, match=r"orders-0@3: order 3 is not wanted.*errors\.dead\.letter\.queue"):
            copy_out(log, Database(tmp_path / "orders.db", refused=["order 3"]))
        assert orders_in(tmp_path / "orders.db") == []


def test_a_parking_topic_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        sink = SinkConnector("app", "out", TOPIC, Database(tmp_path / "orders.db"), park="parked")
        with pytest.raises(ConnectorError, match="out has park='parked', which the native engine alone can do"):
            sink_worker(sink, log, SystemClock(), resources).run_to_end(Event())


def test_attempts_where_rows_cannot_wait_are_refused(tmp_path: Path) -> None:
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        sink = SinkConnector("app", "out", TOPIC, Database(tmp_path / "orders.db"), retry=Retry(attempts=3))
        with pytest.raises(ConnectorError, match=r"out has retry=.*attempts=3.*, which the native engine alone can do"):
            sink_worker(sink, log, SystemClock(), resources).run_to_end(Event())


def test_a_target_that_has_lost_its_rows_gets_them_again(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    with log_with_topics(tmp_path) as log:
        copy_in(log, Numbered(100, ["a"]))
        copy_out(log, Database(database))
        database.unlink()
        copy_out(log, Database(database))
        assert orders_in(database) == orders(100)


def test_a_target_that_is_away_is_tried_again_until_it_is_back(tmp_path: Path) -> None:
    database = tmp_path / "orders.db"
    (tmp_path / "away").touch()
    with log_with_topics(tmp_path) as log, ExitStack() as resources:
        copy_in(log, Numbered(1_000, ["a"]))
        worker = worker_to(log, Database(database), resources)
        with running(worker):
            wait_until(lambda: sum(status.retries for status in worker.statuses().values()) >= 4)
            assert "is away" in next(iter(worker.statuses().values())).error
            (tmp_path / "away").unlink()
            wait_until(lambda: len(orders_in(database)) >= 1_000)
            wait_until(lambda: {status.error for status in worker.statuses().values()} == {""})
        assert orders_in(database) == orders(1_000)
