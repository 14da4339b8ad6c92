"""Delta tables hold each row once, and each key has its last row, as other libraries read them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

import kstreams as ks
from kstreams.connectors import Sink, SinkTask
from kstreams.errors import ConnectorError, ConnectorUnavailableError, FencedError
from kstreams.testing.connectors import Order, SinkContract
from tests.connectors.lake.driving import TASK, appended, batch_of, commit, commit_all, fill, trades, upserted
from tests.connectors.running import LETTERS, copy_in, copy_out, log_with_topics, topic_rows
from tests.connectors.systems import Numbered, orders
from tests.spark.s3_server import S3Server, s3_server


def orders_read(folder: Path) -> list[Order]:
    if not DeltaTable.is_deltatable(str(folder)):
        return []
    return [Order(**row) for row in polars.read_delta(str(folder)).select("id", "name", "amount").to_dicts()]


def rows_of(folder: Path, sort: str = "id") -> list[dict[str, object]]:
    return DeltaTable(folder).to_pyarrow_table().sort_by(sort).to_pylist()


class TestAppend(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.delta(folder / "table")

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(folder / "table")


class TestUpsert(SinkContract):
    def sink(self, folder: Path) -> Sink:
        return ks.sinks.delta(folder / "table", mode="upsert", key="id")

    def orders(self, folder: Path) -> list[Order]:
        return orders_read(folder / "table")


class TestOnS3(SinkContract):
    server: S3Server

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls) -> Iterator[None]:
        with s3_server("lake") as cls.server:
            yield

    def sink(self, folder: Path) -> Sink:
        return ks.sinks.delta(self.server.location(folder.name), options=s3_options(self.server.endpoint))

    def orders(self, folder: Path) -> list[Order]:
        location = self.server.location(folder.name)
        options = s3_options(self.server.endpoint)
        try:
            table = DeltaTable(location, storage_options=options)
        except TableNotFoundError:
            return []
        return [Order(**row) for row in table.to_pyarrow_table().to_pylist()]


def s3_options(endpoint: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "very-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "max_retries": "0",
        "retry_timeout": "3s",
    }


def test_the_last_value_of_a_key_stays_and_null_deletes(tmp_path: Path) -> None:
    sink = ks.sinks.delta(tmp_path / "t", mode="upsert", key="id")
    values = [{"name": "a"}, {"name": "b"}, {"name": "c"}, None, {"name": "B"}, None, {"name": "d"}]
    commit_all(sink, batch_of(values, keys=[1, 2, 3, 1, 2, 4, 4]))
    expected = [{"id": 2, "name": "B"}, {"id": 3, "name": "c"}, {"id": 4, "name": "d"}]
    assert rows_of(tmp_path / "t") == expected
    commit_all(sink, batch_of([None, {"name": "again"}, {"name": None}], keys=[2, 1, 3], first=7))
    assert rows_of(tmp_path / "t") == [{"id": 1, "name": "again"}, {"id": 3, "name": None}, {"id": 4, "name": "d"}]
    read = duckdb.arrow(polars.read_delta(str(tmp_path / "t")).to_arrow())
    assert read.aggregate("count(*), sum(id)").fetchall() == [(3, 8)]


def test_a_commit_that_changes_no_row_keeps_its_offset(tmp_path: Path) -> None:
    for mode in ("append", "upsert"):
        sink = ks.sinks.delta(tmp_path / mode, mode=mode, key="id")
        nothing = pa.struct([("n", pa.int64())])
        commit_all(sink, batch_of([{"n": 1}]))
        with closing(sink.open(TASK)) as writer:
            assert writer.next_offset() == 1
            batch = batch_of([None, None], keys=[7, 8], first=1)
            commit(writer, type(batch)(0, batch.offsets, batch.keys, pa.nulls(2, nothing), batch.timestamps))
            commit(writer, batch_of([{"n": 2}], keys=[9], first=3))
        with closing(sink.open(TASK)) as writer:
            assert writer.next_offset() == 4
        assert rows_of(tmp_path / mode) == [{"id": 0, "n": 1}, {"id": 9, "n": 2}]


def test_keys_with_fields_and_partitions(tmp_path: Path) -> None:
    sink = ks.sinks.delta(
        tmp_path, mode="upsert", key=["shop", "day"], partition_by={"shop": "shop", "month": "%Y-%m"}, timestamp="at"
    )
    keys = [{"shop": "A", "day": 1}, {"shop": "B", "day": 1}, {"shop": "A", "day": 1}, {"shop": "A", "day": 2}]
    commit_all(sink, batch_of([{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}], keys=keys))
    table = DeltaTable(tmp_path)
    assert table.metadata().partition_columns == ["shop", "month"]
    rows = [(row["shop"], row["day"], row["n"], row["month"], row["at"].hour) for row in rows_of(tmp_path, "n")]
    assert rows == [("B", 1, 2, "1970-01", 1), ("A", 1, 3, "1970-01", 2), ("A", 2, 4, "1970-01", 3)]


def test_new_fields_need_a_declaration(tmp_path: Path) -> None:
    batches = [batch_of([{"a": 1}]), batch_of([{"a": 2, "b": "x"}], first=1), batch_of([{"a": 3}], first=2)]
    with pytest.raises(ConnectorError, match=r"has no column b\. Select the fields .* `evolve=True`"):
        commit_all(ks.sinks.delta(tmp_path), *batches)
    commit_all(ks.sinks.delta(tmp_path, evolve=True), *batches[1:])
    assert rows_of(tmp_path, "a") == [{"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 3, "b": None}]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_tasks_that_add_the_same_column_do_not_hinder_each_other(tmp_path: Path, mode: str) -> None:
    sink = ks.sinks.delta(tmp_path, mode=mode, key="id", evolve=True)
    commit_all(sink, batch_of([{"a": 0}], keys=[0]))
    tasks = [SinkTask("trades", "trades", partition) for partition in (1, 2, 3)]
    with ExitStack() as writers:
        opened = [writers.enter_context(closing(sink.open(task))) for task in tasks]
        for number, writer in enumerate(opened, 1):
            writer.write(batch_of([{"a": number, "b": "x"}] if number < 3 else [{"a": 3}], keys=[number]))
            assert list(writer.flush()) == []
        for writer in reversed(opened):
            writer.commit(1)
    assert [(row["a"], row["b"]) for row in rows_of(tmp_path)] == [(0, None), (1, "x"), (2, "x"), (3, None)]


def test_rows_that_the_table_refuses_are_named_and_the_others_go_in(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int8()), ("s", pa.string())])
    for mode in ("append", "upsert"):
        table = DeltaTable.create(tmp_path / mode, schema)
        table.alter.add_constraint({"positive": "n > 0"})
        sink = ks.sinks.delta(tmp_path / mode, mode=mode, key="id")
        values = [{"n": 1}, {"n": 300}, {"n": -1}, {"n": 4}, {"n": 5}, None]
        batch = batch_of(values, keys=[1, 2, 3, None, 5, 1])
        with closing(sink.open(TASK)) as writer:
            writer.write(batch)
            refused = {row.offset: str(row.error) for row in writer.flush()}
            writer.commit(6)
        assert {offset: text.split(":")[0] for offset, text in refused.items()} == {
            1: "Integer value 300 not in range",
            2: "the row violates the constraint 'positive'",
            3: refused[3],
        }
        assert "without id" in refused[3] or "admits no null" in refused[3]
        remaining = [{"id": 1, "n": 1, "s": None}] if mode == "append" else []
        assert rows_of(tmp_path / mode) == [*remaining, {"id": 5, "n": 5, "s": None}]


def test_types_that_delta_does_not_have_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"cannot have the column 'd': Delta has no type duration\[us\]"):
        commit_all(ks.sinks.delta(tmp_path / "d"), batch_of([{"d": timedelta(1)}]))
    commit_all(ks.sinks.delta(tmp_path / "t"), batch_of([{"n": 1}]))
    with pytest.raises(ConnectorError, match="column 'n' is of type int64, the rows have list"):
        commit_all(ks.sinks.delta(tmp_path / "t"), batch_of([{"n": [1]}], first=1))


def test_names_with_dots_spaces_and_capitals(tmp_path: Path) -> None:
    sink = ks.sinks.delta(tmp_path, mode="upsert", key="The Key")
    for number in (1, 2):
        commit_all(sink, batch_of([{"a.b": number, "C d": "y"}], keys=["k"], first=number))
    assert rows_of(tmp_path, "The Key") == [{"The Key": "k", "a.b": 2, "C d": "y"}]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_of_many_writers_of_one_task_exactly_one_commits_each_offset(tmp_path: Path, mode: str) -> None:
    """All of them read the same offset, and commit at the same time; the others are fenced."""
    sink = ks.sinks.delta(tmp_path, mode=mode, key="id")
    commit_all(sink, trades(0, 10))
    for first in range(10, 30, 10):
        outcomes: list[str] = []
        barrier = threading.Barrier(6)

        def race(first: int = first, outcomes: list[str] = outcomes, barrier: threading.Barrier = barrier) -> None:
            with closing(sink.open(TASK)) as writer:
                writer.next_offset()
                writer.write(trades(first, first + 10))
                writer.flush()
                barrier.wait()
                try:
                    writer.commit(first + 10)
                    outcomes.append("committed")
                except FencedError:
                    outcomes.append("fenced")

        threads = [threading.Thread(target=race) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["committed"] + ["fenced"] * 5
    assert [row["number"] for row in rows_of(tmp_path, "number")] == list(range(30))


def test_a_zombie_is_fenced_after_its_snapshot_has_left_the_log(tmp_path: Path) -> None:
    """Checkpoints let a table forget its old commits; the zombie's commit is refused all the same."""
    sink = ks.sinks.delta(tmp_path, configuration={"delta.logRetentionDuration": "interval 0 days"})
    commit_all(sink, trades(0, 10))
    with closing(sink.open(TASK)) as zombie:
        zombie.write(trades(10, 14))
        zombie.flush()
        commit_all(sink, *(trades(first, first + 10) for first in range(10, 60, 10)))
        table = DeltaTable(tmp_path)
        table.create_checkpoint()
        table.cleanup_metadata()
        with pytest.raises((FencedError, ConnectorUnavailableError)):
            zombie.commit(14)
    assert [row["number"] for row in rows_of(tmp_path, "number")] == list(range(60))


def test_tasks_commit_to_one_table_at_the_same_time(tmp_path: Path) -> None:
    for mode in ("append", "upsert"):
        sink = ks.sinks.delta(tmp_path / mode, mode=mode, key=["id", "part"] if mode == "upsert" else None)
        threads = [
            threading.Thread(target=fill, args=(sink, 400, 50), kwargs={"keys": 30, "partition": partition})
            for partition in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    numbers = sorted(row["number"] for row in rows_of(tmp_path / "append", "number"))
    assert numbers == sorted(appended(400) * 4)
    rows = {(row["part"], row["id"]): row["number"] for row in rows_of(tmp_path / "upsert")}
    assert rows == {(part, key): number for part in range(4) for key, number in upserted(400, 30).items()}


def test_compaction_merges_small_files_while_the_sink_writes(tmp_path: Path) -> None:
    sink = ks.sinks.delta(tmp_path)
    assert sink.compact() == 0
    with closing(sink.open(TASK)) as writer:
        for first in range(0, 50, 10):
            commit(writer, trades(first, first + 10))
        assert sink.compact() == 5
        commit(writer, trades(50, 60))
    assert len(DeltaTable(tmp_path).file_uris()) == 2
    assert [row["number"] for row in rows_of(tmp_path, "number")] == list(range(60))


def test_a_topic_goes_through_workers_into_a_table_once(tmp_path: Path) -> None:
    table = tmp_path / "table"
    with log_with_topics(tmp_path) as log:
        for count in (2_000, 3_000):
            copy_in(log, Numbered(count, ["a"]))
            copy_out(log, ks.sinks.delta(table, mode="upsert", key="id"))
            assert sorted(orders_read(table), key=lambda order: order.id) == orders(count)


def test_refused_rows_become_dead_letters(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())])
    DeltaTable.create(tmp_path / "table", schema).alter.add_constraint({"small": "amount < 100"})
    with log_with_topics(tmp_path) as log:
        copy_in(log, Numbered(70, ["a"]))
        copy_out(log, ks.sinks.delta(tmp_path / "table"), LETTERS)
        assert sorted(order.id for order in orders_read(tmp_path / "table")) == list(range(67))
        assert len(topic_rows(log, LETTERS)) == 3


def test_a_wrong_declaration_says_what_to_write() -> None:
    with pytest.raises(ConnectorError, match=r"delta\('t'\) upserts by key columns: name them in `key=`"):
        ks.sinks.delta("t", mode="upsert")
    with pytest.raises(ConnectorError, match="has no mode 'merge': take 'append' or 'upsert'"):
        ks.sinks.delta("t", mode="merge")


def test_a_store_that_is_away_is_tried_again_and_shows_no_credentials() -> None:
    sink = ks.sinks.delta("s3://lake/t", options=s3_options("http://127.0.0.1:1"))
    with pytest.raises(ConnectorUnavailableError, match="s3://lake/t fails") as raised:
        sink.open(TASK)
    assert "very-secret" not in f"{raised.value}{sink!r}"
