"""Iceberg tables hold each row once, and each key has its last row, as other libraries read them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

import kstreams as ks
from kstreams.connectors import Sink, SinkBatch, SinkTask
from kstreams.errors import ConnectorError, ConnectorUnavailableError, FencedError
from kstreams.testing.connectors import Order, SinkContract
from tests.connectors.lake.driving import TASK, appended, batch_of, commit, commit_all, fill, trades
from tests.connectors.lake.killed import catalog_in
from tests.connectors.running import copy_in, copy_out, log_with_topics
from tests.connectors.systems import Numbered, orders
from tests.spark.s3_server import S3Server, s3_server

NAME = "db.trades"


def table_in(catalog: dict[str, str]) -> Table:
    return load_catalog("default", **catalog).load_table(NAME)


def rows_of(folder: Path, sort: str = "id") -> list[dict[str, object]]:
    return table_in(catalog_in(folder)).scan().to_arrow().sort_by(sort).to_pylist()


def orders_read(catalog: dict[str, str]) -> list[Order]:
    try:
        table = table_in(catalog)
    except NoSuchTableError:
        return []
    return [Order(**row) for row in table.scan().to_polars().select("id", "name", "amount").to_dicts()]


class TestAppend(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.iceberg(catalog_in(folder), NAME)

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(catalog_in(folder))


class TestUpsert(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.iceberg(catalog_in(folder), NAME, mode="upsert", key="id")

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(catalog_in(folder))


class TestOnS3(SinkContract):
    server: S3Server

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls) -> Iterator[None]:
        with s3_server("lake") as cls.server:
            yield

    def catalog(self, folder: Path) -> dict[str, str]:
        return catalog_in(folder) | {
            "warehouse": self.server.location(folder.name),
            "s3.endpoint": self.server.endpoint,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.region": "us-east-1",
        }

    def sink(self, folder: Path) -> Sink:
        return ks.sinks.iceberg(self.catalog(folder), NAME)

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(self.catalog(folder))


def test_partition_fields_and_other_readers(tmp_path: Path) -> None:
    fields = ["truncate(2, sym)", "day(at)", "bucket(4, id)", "number"]
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME, key="id", timestamp="at", partition_by=fields)
    commit_all(sink, trades(0, 50), trades(50, 60))
    table = table_in(catalog_in(tmp_path))
    assert [str(field.transform) for field in table.spec().fields] == ["truncate[2]", "day", "bucket[4]", "identity"]
    rows = table.scan(row_filter="sym = 'S1' and at < '1970-01-01T10:00:00+00:00'").to_arrow()
    assert sorted(rows["number"].to_pylist()) == [1, 4, 7]
    connection = table.scan().to_duckdb("trades")
    assert connection.sql("SELECT count(*), sum(number), count(DISTINCT sym) FROM trades").fetchall() == [(60, 1770, 3)]
    frame = polars.scan_iceberg(table).collect().sort("number")
    assert frame["number"].to_list() == list(range(60))
    assert frame["at"][30] == datetime(1970, 1, 2, 6, tzinfo=UTC)


def test_the_last_value_of_a_key_stays_and_null_deletes(tmp_path: Path) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME, mode="upsert", key="id")
    values = [{"name": "a"}, {"name": "b"}, {"name": "c"}, None, {"name": "B"}, None, {"name": "d"}]
    commit_all(sink, batch_of(values, keys=[1, 2, 3, 1, 2, 4, 4]))
    assert rows_of(tmp_path) == [{"id": 2, "name": "B"}, {"id": 3, "name": "c"}, {"id": 4, "name": "d"}]
    commit_all(sink, batch_of([None, {"name": "again"}, {"name": None}], keys=[2, 1, 3], first=7))
    assert rows_of(tmp_path) == [{"id": 1, "name": "again"}, {"id": 3, "name": None}, {"id": 4, "name": "d"}]


def test_a_key_may_have_several_columns(tmp_path: Path) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME, mode="upsert", key=["city", "day", "hour"])
    keys = [
        {"city": city, "day": date(2026, 11, day), "hour": datetime(2026, 11, day, hour, tzinfo=UTC)}
        for city in ("Rome", "Oslo")
        for day in (1, 2)
        for hour in range(3)
    ]
    commit_all(sink, batch_of([{"n": number} for number in range(12)], keys=keys))
    changes = {0: {"n": 100}, 5: None, 7: {"n": 107}}
    commit_all(sink, batch_of(list(changes.values()), keys=[keys[number] for number in changes], first=12))
    rows = {number: key | {"n": number} for number, key in enumerate(keys)}
    expected = rows | {0: keys[0] | {"n": 100}, 7: keys[7] | {"n": 107}}
    del expected[5]
    assert rows_of(tmp_path, "n") == sorted(expected.values(), key=lambda row: row["n"])


def test_later_decimals_may_have_more_digits_than_the_first(tmp_path: Path) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME, mode="upsert", key="id")
    prices = [Decimal("1.25"), Decimal("123456789012.75"), Decimal("-0.50")]
    for number, price in enumerate(prices):
        commit_all(sink, batch_of([{"price": price}], keys=[number], first=number))
    assert [row["price"] for row in rows_of(tmp_path)] == prices


def test_the_offset_outlives_snapshots_of_others_and_their_expiry(tmp_path: Path) -> None:
    """A table property stays when a snapshot expires, as one of another writer may be the only one that is left."""
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME)
    commit_all(sink, trades(0, 10))
    table = table_in(catalog_in(tmp_path))
    assert table.current_snapshot().summary["kstreams.offset.trades-0"] == "10"
    table.append(table.scan().to_arrow())
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    assert len(table.refresh().snapshots()) == 1
    with closing(sink.open(TASK)) as writer:
        assert writer.next_offset() == 10
        commit(writer, trades(10, 12))
    assert [row["number"] for row in rows_of(tmp_path, "number")] == sorted([*range(10), *range(12)])


def test_a_commit_without_rows_keeps_its_offset_and_fences_others(tmp_path: Path) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME)
    commit_all(sink, batch_of([{"n": 1}]))
    with closing(sink.open(TASK)) as former, closing(sink.open(TASK)) as writer:
        nothing = batch_of([None, None], first=1)
        kind = pa.struct([("n", pa.int64())])
        commit(writer, type(nothing)(0, nothing.offsets, nothing.keys, pa.nulls(2, kind), nothing.timestamps))
        with pytest.raises(FencedError, match="another writer of trades-0 has committed offset 3"):
            commit(former, batch_of([{"n": 2}], first=1))
    with closing(sink.open(TASK)) as writer:
        assert writer.next_offset() == 3


def test_new_fields_need_a_declaration(tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path)
    batches = [batch_of([{"a": 1}]), batch_of([{"a": 2, "b": "x"}], first=1), batch_of([{"a": 3}], first=2)]
    with pytest.raises(ConnectorError, match=r"has no column b\. Select the fields .* `evolve=True`"):
        commit_all(ks.sinks.iceberg(catalog, NAME), *batches)
    commit_all(ks.sinks.iceberg(catalog, NAME, evolve=True), *batches[1:])
    assert rows_of(tmp_path, "a") == [{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 3, "b": None}]


def test_tasks_that_add_the_same_column_do_not_hinder_each_other(tmp_path: Path) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME, key="id", evolve=True)
    commit_all(sink, batch_of([{"a": 0}], keys=[0]))
    with ExitStack() as writers:
        tasks = [SinkTask("trades", "trades", partition) for partition in (1, 2, 3)]
        opened = [writers.enter_context(closing(sink.open(task))) for task in tasks]
        for number, writer in enumerate(opened, 1):
            writer.write(batch_of([{"a": number, "b": "x"}] if number < 3 else [{"a": 3}], keys=[number]))
            assert list(writer.flush()) == []
        for writer in reversed(opened):
            writer.commit(1)
    assert [(row["a"], row["b"]) for row in rows_of(tmp_path)] == [(0, None), (1, "x"), (2, "x"), (3, None)]


def test_rows_that_the_table_refuses_are_named_and_the_others_go_in(tmp_path: Path) -> None:
    catalog = load_catalog("default", **catalog_in(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table(NAME, pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32())]))
    with closing(ks.sinks.iceberg(catalog_in(tmp_path), NAME, key="id").open(TASK)) as writer:
        writer.write(batch_of([{"n": 1}, {"n": 1 << 40}, {"n": 3}, {"n": 4}], keys=[1, 2, None, 4]))
        refused = {row.offset: str(row.error) for row in writer.flush()}
        writer.commit(4)
    assert list(refused) == [1, 2]
    assert "not in range" in refused[1]
    assert refused[2] == "the column 'id' of the table admits no null"
    assert rows_of(tmp_path) == [{"id": 1, "n": 1}, {"id": 4, "n": 4}]


def test_of_several_writers_of_one_task_exactly_one_commits(tmp_path: Path) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME)
    commit_all(sink, trades(0, 10))
    outcomes = []
    barrier = threading.Barrier(4)

    def race() -> None:
        with closing(sink.open(TASK)) as writer:
            writer.write(trades(10, 20))
            writer.flush()
            barrier.wait()
            try:
                writer.commit(20)
                outcomes.append("committed")
            except FencedError:
                outcomes.append("fenced")

    in_threads(race, 4)
    assert sorted(outcomes) == ["committed"] + ["fenced"] * 3
    assert [row["number"] for row in rows_of(tmp_path, "number")] == list(range(20))


def test_a_zombie_that_pyiceberg_would_let_commit_is_fenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyiceberg tries an append again on newer metadata; the other writer commits between its check and its commit."""
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME)
    commit_all(sink, trades(0, 10))
    do_commit = Table._do_commit
    has_raced = []

    def commit_of_other_first(table: Table, *updates: object, **requirements: object) -> None:
        if not has_raced:
            has_raced.append(True)
            commit_of_other_writer(tmp_path, trades(10, 15))
        do_commit(table, *updates, **requirements)

    monkeypatch.setattr(Table, "_do_commit", commit_of_other_first)
    with closing(sink.open(TASK)) as zombie, pytest.raises(FencedError):
        commit(zombie, trades(10, 13))
    assert [row["number"] for row in rows_of(tmp_path, "number")] == list(range(15))


def commit_of_other_writer(folder: Path, batch: SinkBatch) -> None:
    """Commit by pyiceberg alone, as a writer in another process does."""
    rows = pa.RecordBatch.from_struct_array(batch.values)
    with table_in(catalog_in(folder)).transaction() as transaction:
        transaction.set_properties({"kstreams.offset.trades-0": str(batch.offsets[-1] + 1)})
        transaction.append(pa.Table.from_batches([rows]))


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_tasks_commit_to_one_table_at_the_same_time(tmp_path: Path, mode: str) -> None:
    sink = ks.sinks.iceberg(catalog_in(tmp_path), NAME, mode=mode, key="number" if mode == "upsert" else None)
    if mode == "append":
        partitions = iter(range(3))
        in_threads(lambda: fill(sink, 200, 50, keys=30, partition=next(partitions)), 3)
        expected = sorted(appended(200) * 3)
    else:
        parts = iter([(0, 20), (100, 120), (200, 220)])

        def upsert() -> None:
            first, last = next(parts)
            task = SinkTask("trades", "trades", first)
            for begin in range(first, last, 10):
                commit_all(sink, trades(begin, begin + 10), trades(begin + 10, begin + 20, keys=10_000), task=task)

        in_threads(upsert, 3)
        expected = [number for first in (0, 100, 200) for number in range(first, first + 30)]
    assert [row["number"] for row in rows_of(tmp_path, "number")] == expected


def in_threads(work: object, count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_topic_goes_through_workers_into_a_table_once(tmp_path: Path) -> None:
    with log_with_topics(tmp_path) as log:
        for count in (2_000, 3_000):
            copy_in(log, Numbered(count, ["a"]))
            copy_out(log, ks.sinks.iceberg(catalog_in(tmp_path), NAME, mode="upsert", key="id"))
            assert sorted(orders_read(catalog_in(tmp_path)), key=lambda order: order.id) == orders(count)


def test_types_that_iceberg_does_not_have_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"db\.trades cannot have the columns d: .*duration"):
        commit_all(ks.sinks.iceberg(catalog_in(tmp_path), NAME), batch_of([{"d": timedelta(1)}]))


def test_a_column_has_one_partition_field() -> None:
    with pytest.raises(ConnectorError, match=r"day\(at\), hour\(at\) name a column twice"):
        ks.sinks.iceberg("lake", NAME, partition_by=["day(at)", "hour(at)"])


@pytest.mark.parametrize("text", ["day(at", "bucket(id)", "week(at)", "day(a, b)"])
def test_a_wrong_partition_field_says_what_to_write(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConnectorError, match="is no partition field: write 'column', 'day\\(column\\)'"):
        ks.sinks.iceberg(catalog_in(tmp_path), NAME, partition_by=text)


def test_a_wrong_declaration_says_what_to_write() -> None:
    with pytest.raises(ConnectorError, match=r"iceberg\('db\.t'\) upserts by key columns: name them in `key=`"):
        ks.sinks.iceberg("lake", "db.t", mode="upsert")


def test_a_catalogue_that_is_away_is_tried_again_and_shows_no_credentials() -> None:
    uri = "postgresql+psycopg://user:very-secret@127.0.0.1:1/lake"
    sink = ks.sinks.iceberg({"type": "sql", "uri": uri, "warehouse": "file:///nowhere"}, NAME)
    with pytest.raises(ConnectorUnavailableError, match=r"db\.trades fails") as raised:
        sink.open(TASK)
    assert "very-secret" not in f"{raised.value}{sink!r}"
