"""What a SQL source reads. The tables are written by the drivers of the databases."""

from __future__ import annotations

import pickle
import re
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

import kstreams as ks
from kstreams.connectors import Source, SourceBatch
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from tests.connectors.running import copy_in, copy_out, log_with_topics
from tests.connectors.sql.databases import EmptyDatabase


class Trade(msgspec.Struct):
    id: int
    symbol: str | None
    price: float
    at: datetime


TRADES = 'CREATE TABLE trades (id INTEGER PRIMARY KEY, symbol VARCHAR(9), price DOUBLE PRECISION, "at" TIMESTAMP)'
START = datetime(2024, 5, 6, tzinfo=UTC)


def insert(database: EmptyDatabase, ids: list[int], *, seconds: int | None = None, price: float = 1.5) -> None:
    """Add trades, one a second by their ids, or all at one second."""
    rows = []
    for number in ids:
        moment = START + timedelta(seconds=number if seconds is None else seconds)
        rows.append(f"({number}, 's{number % 3}', {price}, '{moment:%Y-%m-%d %H:%M:%S}')")
    database.rows(f"INSERT INTO trades VALUES {', '.join(rows)}")


def trades(database: EmptyDatabase, mode: str, **settings: Any) -> Source:
    columns = {"incrementing_column": "id", "timestamp_column": "at", "poll_interval": 60_000}
    return ks.sources.sql(
        database.url,
        table="trades",
        value=Trade,
        key="id",
        mode=mode,
        **{**columns, **settings},  # type: ignore[arg-type]
    )


def read(source: Source, position: Any = None, split: str = "trades") -> tuple[list[dict[str, Any]], Any]:
    """Return the rows that there are now, and the position after them."""
    rows: list[dict[str, Any]] = []
    for batch in batches(source, position, split):
        rows += batch.values.to_pylist()
        position = msgspec.json.decode(msgspec.json.encode(batch.position))
    return rows, position


def batches(source: Source, position: Any = None, split: str = "trades") -> list[SourceBatch]:
    with closing(source.open(split, position)) as reader:
        return list(iter(reader.read, None))  # type: ignore[arg-type]


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


def test_incrementing_reads_rows_with_greater_ids(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    source = trades(database, "incrementing", batch_max_rows=2)
    assert read(source) == ([], None)
    insert(database, [3, 1, 2, 5, 4])
    rows, position = read(source)
    assert ids(rows) == [1, 2, 3, 4, 5]
    assert rows[0] == {"id": 1, "symbol": "s1", "price": 1.5, "at": START + timedelta(seconds=1)}
    assert position == {"incrementing": 5}
    insert(database, [0, 6])
    rows, position = read(source, position)
    assert (ids(rows), position) == ([6], {"incrementing": 6})


def test_timestamp_and_incrementing_reads_added_and_changed_rows_once(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    source = trades(database, "timestamp+incrementing", batch_max_rows=3)
    insert(database, list(range(10)), seconds=7)
    insert(database, [20, 19], seconds=8)
    parts = batches(source)
    assert [len(batch.values) for batch in parts] == [3, 3, 3, 3]
    for number, batch in enumerate(parts):
        rest = [row for part in parts[number + 1 :] for row in ids(part.values.to_pylist())]
        assert ids(read(source, batch.position)[0]) == rest
    _, position = read(source)
    assert position["incrementing"] == 20
    insert(database, [21], seconds=8)  # the same time, a greater id
    database.rows("UPDATE trades SET price = 9, \"at\" = '2024-05-06 00:01:00' WHERE id = 3")
    rows, _ = read(source, position)
    assert [(row["id"], row["price"]) for row in rows] == [(21, 1.5), (3, 9.0)]


def test_timestamp_never_divides_rows_of_the_same_time(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    insert(database, [1, 2, 3])
    insert(database, [4, 5, 6, 7], seconds=4)
    insert(database, [8], seconds=8)
    parts = [ids(batch.values.to_pylist()) for batch in batches(trades(database, "timestamp", batch_max_rows=2))]
    assert [sorted(part) for part in parts] == [[1], [2, 3], [4, 5, 6, 7], [8]]


def test_rows_wait_for_the_delay_of_late_commits(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    now = datetime.now(UTC)
    for number, age in ((1, 3600), (2, 60), (3, -3600)):
        moment = now - timedelta(seconds=age)
        database.rows(f"INSERT INTO trades VALUES ({number}, 'a', 1.0, '{moment:%Y-%m-%d %H:%M:%S}')")
    assert ids(read(trades(database, "timestamp"))[0]) == [1, 2]
    assert ids(read(trades(database, "timestamp", timestamp_delay_interval=timedelta(minutes=30)))[0]) == [1]


def test_bulk_reads_all_rows_in_each_interval_and_continues_an_interrupted_round(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    insert(database, list(range(5)))
    source = trades(database, "bulk", batch_max_rows=2)
    parts = batches(source)
    assert [ids(batch.values.to_pylist()) for batch in parts[:3]] == [[0, 1], [2, 3], [4]]
    assert ids(read(source, parts[0].position)[0]) == [2, 3, 4]
    assert read(source, parts[-1].position)[0] == []  # until the interval has passed
    with closing(trades(database, "bulk", poll_interval=1).open("trades", None)) as reader:
        rows: list[int] = []
        while len(rows) < 15:
            batch = reader.read()
            rows += ids(batch.values.to_pylist()) if batch and len(batch.values) else []
    assert rows == [0, 1, 2, 3, 4] * 3


def test_keys_and_event_times_come_from_columns(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    insert(database, [1, 2])
    [batch] = batches(trades(database, "timestamp+incrementing"))
    assert batch.keys is not None
    assert batch.timestamps is not None
    assert batch.keys.to_pylist() == [1, 2]
    first_ms = int(START.timestamp() * 1000)
    assert batch.timestamps.to_pylist() == [first_ms + 1000, first_ms + 2000]
    source = ks.sources.sql(
        database.url, table="trades", key=["symbol", "id"], mode="incrementing", incrementing_column="id"
    )
    [batch] = batches(source)
    assert batch.keys is not None
    assert batch.keys.to_pylist() == [{"symbol": "s1", "id": 1}, {"symbol": "s2", "id": 2}]
    assert set(batch.values.to_pylist()[0]) == {"id", "symbol", "price", "at"}


def test_a_query_has_the_modes_of_a_table(database: EmptyDatabase) -> None:
    database.rows(TRADES)
    insert(database, list(range(6)))
    query = "SELECT id, symbol, price * 2 AS price, \"at\" FROM trades WHERE symbol <> ':s%' AND id <> 2;"
    source = ks.sources.sql(database.url, query=query, value=Trade, mode="incrementing", incrementing_column="id")
    assert list(source.splits()) == ["query"]
    rows, position = read(source, split="query")
    assert [(row["id"], row["price"]) for row in rows] == [(0, 3.0), (1, 3.0), (3, 3.0), (4, 3.0), (5, 3.0)]
    assert read(source, position, split="query")[0] == []


def test_each_table_is_a_split(database: EmptyDatabase) -> None:
    for table in ("a", "b"):
        database.rows(f"CREATE TABLE {table} (id INTEGER, name VARCHAR(9))")
        database.rows(f"INSERT INTO {table} VALUES (1, '{table}')")
    source = ks.sources.sql(database.url, table=["a", "b"], tasks=2)
    assert [read(source, split=split)[0] for split in source.splits()] == [
        [{"id": 1, "name": "a"}],
        [{"id": 1, "name": "b"}],
    ]


class Everything(msgspec.Struct):
    flag: bool | None
    small: int | None
    ratio: float | None
    text: str | None
    raw: bytes | None
    at: datetime | None
    day: date | None
    tags: list[str] | None
    price: float | None


def test_types_arrive_as_they_are(database: EmptyDatabase) -> None:
    blob = {"postgres": "bytea", "sqlite": "blob", "duckdb": "blob"}[database.name]
    quoted = {"postgres": r"'\x00ff'", "sqlite": "x'00ff'", "duckdb": r"'\x00\xFF'"}[database.name]
    zoned = "TIMESTAMP WITH TIME ZONE"
    database.rows(
        f"CREATE TABLE everything (flag BOOLEAN, small SMALLINT, ratio DOUBLE PRECISION, text VARCHAR(30), raw {blob}, "
        f'"at" {zoned}, day DATE, tags JSON, price NUMERIC(9, 2))'
    )
    text = 'ä "q",\n\\.'
    database.rows(
        f"INSERT INTO everything VALUES (true, -7, 0.1, '{text}', {quoted}, '2024-05-06 07:08:09.123456+00:00', "
        "'2024-05-06', '[\"a\", \"b\"]', 12.5)"
    )
    database.rows("INSERT INTO everything (text) VALUES (''), (NULL)")
    rows, _ = read(ks.sources.sql(database.url, table="everything", value=Everything), split="everything")
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    assert list(rows[0].values()) == [
        True, -7, 0.1, text, b"\x00\xff", moment, date(2024, 5, 6), ["a", "b"], 12.5
    ]  # fmt: skip
    assert [row["text"] for row in rows] == [text, "", None]
    assert set(rows[2].values()) == {None}


def test_a_value_of_another_type_is_named_with_its_column(database: EmptyDatabase) -> None:
    database.rows(TRADES.replace("DOUBLE PRECISION", "VARCHAR(9)"))
    database.rows("INSERT INTO trades VALUES (1, 'a', 'a lot', '2024-05-06')")
    ((row,),) = [batch.unreadable for batch in batches(trades(database, "incrementing"), None, "trades")]
    assert re.search(r"column price of trades has a value that is no double.*a lot", str(row.error))
    assert row.position == {"incrementing": 1}


def test_names_are_identifiers_whatever_they_hold(database: EmptyDatabase) -> None:
    database.rows("CREATE TABLE victims (n INTEGER)")
    database.rows('CREATE TABLE "t""; DROP TABLE victims; --" ("i""d %s :x" INTEGER, "at" TIMESTAMP)')
    database.rows('INSERT INTO "t""; DROP TABLE victims; --" VALUES (1, \'2024-05-06\')')
    table = 't"; DROP TABLE victims; --'
    source = ks.sources.sql(
        database.url,
        table=table,
        mode="timestamp+incrementing",
        incrementing_column='i"d %s :x',
        timestamp_column="at",
    )
    rows, position = read(source, split=table)
    assert [row['i"d %s :x'] for row in rows] == [1]
    assert read(source, {**position, "incrementing": 0}, split=table)[0] == rows
    assert database.rows("SELECT count(*) FROM victims") == [(0,)]


def test_a_text_position_that_was_tampered_with_is_a_value(postgres: EmptyDatabase) -> None:
    postgres.rows("CREATE TABLE t (id text); INSERT INTO t VALUES ('a'), ('b')")
    source = ks.sources.sql(postgres.url, table="t", mode="incrementing", incrementing_column="id")
    assert read(source, {"incrementing": "'; DROP TABLE t; --"}, split="t")[0] == [{"id": "a"}, {"id": "b"}]
    assert postgres.rows("SELECT count(*) FROM t") == [(2,)]


def test_rows_from_a_table_go_through_a_topic_to_another_table_once(database: EmptyDatabase, tmp_path: Path) -> None:
    database.rows("CREATE TABLE orders (id INTEGER PRIMARY KEY, name VARCHAR(20), amount DOUBLE PRECISION)")
    source = ks.sources.sql(
        database.url, table="orders", value=dict, key="id", key_type=int, mode="incrementing", incrementing_column="id"
    )
    sink = ks.sinks.sql(database.url, "copies", mode="upsert", key="id")
    with log_with_topics(tmp_path) as log:
        for start in (0, 500, 1000):
            values = ", ".join(f"({number}, 'order {number}', {number}.5)" for number in range(start, start + 500))
            database.rows(f"INSERT INTO orders VALUES {values}")
            copy_in(log, source)
            copy_out(log, sink)
            assert database.rows("SELECT id, name, amount FROM copies ORDER BY id") == database.rows(
                "SELECT id, name, amount FROM orders ORDER BY id"
            )


def test_an_unknown_table_and_a_database_that_is_away_are_different_errors(database: EmptyDatabase) -> None:
    database.rows("CREATE TABLE other (id INTEGER)")
    with pytest.raises(ConnectorError, match=r"cannot read trades: .*trades") as caught:
        read(trades(database, "incrementing"))
    assert not isinstance(caught.value, ConnectorUnavailableError)
    away = ks.sources.sql("postgresql://ada:sesame@127.0.0.1:1/shop", table="trades")
    with pytest.raises(ConnectorUnavailableError, match=r"ada:\*\*\*@127.0.0.1"):
        read(away)


def test_numbers_and_special_times_of_postgres(postgres: EmptyDatabase) -> None:
    postgres.rows(
        "CREATE TABLE t (n numeric, f float8, u uuid, j jsonb);"
        "INSERT INTO t VALUES (12.5, 'Infinity', '00000000-0000-0000-0000-000000000001', '{\"x\": [1]}')"
    )
    [row] = read(ks.sources.sql(postgres.url, table="t"), split="t")[0]
    assert (Decimal(row["n"]), row["f"], row["u"]) == (
        Decimal("12.5"),
        float("inf"),
        "00000000-0000-0000-0000-000000000001",
    )
    assert msgspec.json.decode(row["j"]) == {"x": [1]}


def test_a_transaction_that_commits_late_is_read_within_the_delay(postgres: EmptyDatabase) -> None:
    postgres.rows("CREATE TABLE trades (id int, symbol text, price float8, at timestamptz)")
    source = trades(postgres, "timestamp+incrementing", timestamp_delay_interval=500, poll_interval=50)
    with closing(source.open("trades", None)) as reader, psycopg.connect(postgres.url) as late:
        late.execute("INSERT INTO trades VALUES (1, 'a', 1, now())")
        postgres.rows("INSERT INTO trades VALUES (2, 'a', 1, now())")
        assert reader.read() is None  # the later row waits, too
        late.commit()
        rows: list[int] = []
        while len(rows) < 2:
            batch = reader.read()
            rows += ids(batch.values.to_pylist()) if batch else []
    assert rows == [1, 2]


def test_a_smaller_id_that_is_committed_later_is_read(postgres: EmptyDatabase) -> None:
    postgres.rows("CREATE TABLE trades (id serial PRIMARY KEY, symbol text, price float8, at timestamptz)")
    add = "INSERT INTO trades (symbol, price, at) VALUES ('a', 1, now())"
    postgres.rows(add)
    source = trades(postgres, "incrementing", wait_for_open_transactions=True)
    _, position = read(source)
    assert position == {"incrementing": 1}
    with psycopg.connect(postgres.url) as late:
        late.execute(add)
        postgres.rows(add)
        assert ids(read(trades(postgres, "incrementing"), position)[0]) == [3]  # 2 would be lost
        assert ids(read(source, position)[0]) == []
    assert ids(read(source, position)[0]) == [2, 3]


def test_a_source_describes_itself_without_its_password_and_can_be_pickled() -> None:
    source = ks.sources.sql("postgres://ada:sesame@db.example/shop", table="trades", value=Trade, key="id")
    assert (
        repr(pickle.loads(pickle.dumps(source)))
        == "SqlSource(postgres://ada:***@db.example/shop, 'trades', mode='bulk')"
    )
    assert (source.key, source.value) == (int, Trade)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "pass either table= or query="),
        ({"table": "a", "query": "SELECT 1"}, "pass either table= or query="),
        ({"table": "a", "mode": "latest"}, "mode='latest' is not known: write one of 'bulk', 'incrementing'"),
        ({"table": "a", "mode": "timestamp+incrementing", "timestamp_column": "at"}, "needs incrementing_column="),
        ({"table": "a", "key": "id"}, "pass key_type="),
        ({"table": "a", "value": int}, "has no fields"),
        ({"table": "a", "wait_for_open_transactions": True}, "needs tables of Postgres"),
    ],
)
def test_wrong_declarations_say_what_to_write(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConnectorError, match=message):
        ks.sources.sql("sqlite:///x.db", **settings)
