"""Rows and changes of a table of PostgreSQL become records, each once and in the order of commits."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from time import sleep
from typing import Any

import msgspec
import psycopg
import pytest

import kstreams as ks
from kstreams.connectors import Source
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from tests.connectors.postgres.databases import Capture, Database, captured
from tests.support.examples import few_of


class Order(msgspec.Struct):
    id: int
    name: str | None
    amount: float


TABLE = "CREATE TABLE orders (id int PRIMARY KEY, name text, amount float8 NOT NULL DEFAULT 0)"


SOON = timedelta(milliseconds=50)


def source(database: Database, table: str, value: Any = dict, **settings: Any) -> Source:
    return ks.sources.postgres(database.url, table, value, **{"slot": database.name, "heartbeat": SOON, **settings})


def orders(database: Database, **settings: Any) -> Capture:
    return Capture(database, source(database, "orders", Order, **{"key": "id", **settings}))


def row(number: int, name: str | None, amount: float = 0.0) -> tuple[int, dict[str, object]]:
    return number, {"id": number, "name": name, "amount": amount}


def test_the_rows_of_a_table_come_first_and_then_its_changes_in_the_order_of_commits(database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (2, 'b', 2.5), (1, 'a', 1.5), (3, '', 0), (4, NULL, 0)")
    capture = orders(database)
    assert capture.read() == [row(1, "a", 1.5), row(2, "b", 2.5), row(3, ""), row(4, None)]
    database.run(
        "INSERT INTO orders VALUES (5, 'e', 5)",
        "UPDATE orders SET name = 'A' WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
        "UPDATE orders SET id = 30, name = 'moved' WHERE id = 3",
        "INSERT INTO orders SELECT g, 'many' FROM generate_series(100, 102) g",
    )
    assert capture.read() == [
        row(5, "e", 5.0),
        row(1, "A", 1.5),
        (2, None),
        (3, None),
        row(30, "moved"),
        *(row(number, "many") for number in (100, 101, 102)),
    ]
    capture.close()


def test_a_reader_that_is_opened_again_continues_after_its_last_position(database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1, 'a')")
    capture = orders(database)
    assert capture.read() == [row(1, "a")]
    for number in range(2, 5):
        database.run(f"INSERT INTO orders VALUES ({number}, 'n')")
        capture.reopen()
        assert capture.read() == [row(number, "n")]
    capture.reopen()
    assert capture.read() == []
    capture.close()


def test_a_transaction_that_is_rolled_back_has_no_records(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    assert capture.read() == []
    with pytest.raises(psycopg.errors.UniqueViolation):
        database.run("INSERT INTO orders VALUES (1, 'a'), (1, 'b')")
    database.run("INSERT INTO orders VALUES (2, 'b')")
    assert capture.read() == [row(2, "b")]
    capture.close()


def test_records_have_the_time_of_the_commit(database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1, 'a')")
    before = database.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8")
    capture = orders(database)
    capture.read()
    database.run("INSERT INTO orders VALUES (2, 'b')")
    after = database.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8")
    ((_, _, time_ms),) = capture.records()
    assert before <= time_ms <= after
    capture.close()


def test_a_transaction_that_commits_after_the_snapshot_is_not_lost_and_one_before_it_is_not_repeated(
    database: Database,
) -> None:
    database.run(TABLE, "INSERT INTO orders SELECT g, 'old' FROM generate_series(1, 10) g")
    capture = orders(database)  # the slot is there, the snapshot not yet
    with psycopg.connect(database.url) as open_transaction:
        open_transaction.execute("UPDATE orders SET name = 'late' WHERE id = 1")
        open_transaction.execute("INSERT INTO orders VALUES (20, 'late')")
        database.run("UPDATE orders SET name = 'early' WHERE id = 2", "INSERT INTO orders VALUES (11, 'early')")
        first = capture.read()
        database.run("UPDATE orders SET name = 'later' WHERE id = 2")
    assert first == [row(1, "old"), row(2, "early"), *(row(n, "old") for n in range(3, 11)), row(11, "early")]
    assert capture.read() == [row(2, "later"), row(1, "late"), row(20, "late")]
    capture.close()


def test_a_snapshot_waits_for_transactions_that_ran_when_the_source_was_opened(database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1, 'a')")
    orders(database).close()  # creates the slot
    with psycopg.connect(database.url) as open_transaction:
        open_transaction.execute("INSERT INTO orders VALUES (2, 'b')")
        capture = orders(database)
        assert capture.take(3) == []
        open_transaction.commit()
    assert capture.read() == [row(1, "a"), row(2, "b")]
    capture.close()


@pytest.mark.parametrize("keys", few_of(['text COLLATE "en-x-icu"', "text", "uuid", "numeric"], 2))
def test_a_snapshot_that_was_interrupted_continues_behind_its_last_row(
    database: Database, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kstreams.connectors.postgres.snapshot.MAX_ROWS", 7)
    database.run(f"CREATE TABLE items (id {keys} PRIMARY KEY, n int)")
    expression = {"uuid": "md5(g::text)::uuid", "numeric": "g / 7.0"}.get(keys, "chr(65 + g % 60) || g")
    database.run(f"INSERT INTO items SELECT {expression}, g FROM generate_series(1, 100) g")
    capture = Capture(database, source(database, "items", key_type=str))
    read: list[tuple[object, dict[str, object] | None]] = []
    for turn in range(10):
        read += capture.take(2)
        capture.reopen()  # each turn is a snapshot of the database of its own
        database.run(
            f"UPDATE items SET n = n + 1000 WHERE n % 10 = {turn}",
            f"DELETE FROM items WHERE n % 1000 = {10 + turn}",
            f"INSERT INTO items SELECT {expression}, g FROM generate_series({200 + turn}, {200 + turn}) g",
        )
    read += capture.read()
    table = {key: value for key, value in read if value is not None}
    for key, value in read:
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    assert {key: value["n"] for key, value in table.items()} == dict(database.rows("SELECT id::text, n FROM items"))
    changes = [(key, value["n"] if value else None) for key, value in read]
    assert len(set(changes)) == len(changes)  # each version of a row comes once
    capture.close()


def test_a_transaction_that_is_larger_than_a_batch_continues_inside_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kstreams.connectors.postgres.changes.MAX_MESSAGES", 10)
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    database.run(
        "INSERT INTO orders SELECT g, 'new' FROM generate_series(1, 100) g",
        "INSERT INTO orders VALUES (101, 'new')",
        "UPDATE orders SET id = id + 1000",
    )
    rows: list[tuple[object, object]] = []
    for _ in range(12):
        rows += capture.take(2)
        capture.reopen()
    rows += capture.read()
    expected = [row(n, "new") for n in range(1, 102)]
    expected += [record for n in range(1, 102) for record in ((n, None), row(n + 1000, "new"))]
    assert rows == expected
    capture.close()


def test_a_transaction_that_fits_comes_in_one_batch(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    database.run("INSERT INTO orders SELECT g, 'new' FROM generate_series(1, 20000) g")
    while not (records := capture.next_records()):
        pass
    assert len(records) == 20_000
    capture.close()


def test_only_committed_positions_move_the_slot(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    confirmed = confirmed_lsn(database)
    database.run("INSERT INTO orders VALUES (1, 'a')")
    assert capture.next_changes() == [row(1, "a")]  # without committed()
    assert confirmed_lsn(database) == confirmed
    capture.reader.committed(capture.position)
    while confirmed_lsn(database) == confirmed:
        capture.reader.read()
    capture.close()


def test_the_log_is_not_retained_for_an_idle_table(database: Database) -> None:
    database.run(TABLE, "CREATE TABLE other (id int)")
    capture = orders(database)
    capture.read()
    before = confirmed_lsn(database)
    database.run("INSERT INTO other SELECT * FROM generate_series(1, 50000)")
    written = database.value("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    while confirmed_lsn(database) < written:
        assert capture.read() == []
    assert written > before
    capture.close()


def confirmed_lsn(database: Database) -> int:
    query = f"SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE slot_name = '{database.name}'"
    return int(database.value(query))


LONG = "repeat(md5(%s::text), 400)"


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_long_column_that_an_update_does_not_change_retains_its_value(database: Database, identity: str) -> None:
    database.run(
        TABLE,
        "ALTER TABLE orders ALTER name SET STORAGE EXTERNAL",
        f"ALTER TABLE orders REPLICA IDENTITY {identity}",
        f"INSERT INTO orders SELECT g, {LONG % 'g'} FROM generate_series(1, 3) g",
    )
    names = dict(database.rows("SELECT id, name FROM orders"))
    capture = orders(database)
    capture.read()
    database.run(
        "UPDATE orders SET amount = 5 WHERE id = 1",
        "UPDATE orders SET id = 20, amount = 6 WHERE id = 2",
        f"UPDATE orders SET name = {LONG % 99} WHERE id = 3",
    )
    new_name = database.value("SELECT name FROM orders WHERE id = 3")
    assert capture.read() == [row(1, names[1], 5.0), (2, None), row(20, names[2], 6.0), row(3, new_name)]
    capture.close()


def test_with_full_identity_long_columns_have_the_value_of_the_moment_of_the_change(database: Database) -> None:
    database.run(
        TABLE,
        "ALTER TABLE orders ALTER name SET STORAGE EXTERNAL",
        "ALTER TABLE orders REPLICA IDENTITY FULL",
        f"INSERT INTO orders SELECT g, {LONG % 'g'} FROM generate_series(1, 2) g",
    )
    names = dict(database.rows("SELECT id, name FROM orders"))
    capture = orders(database)
    capture.read()
    database.run(
        "UPDATE orders SET amount = 5",
        "UPDATE orders SET name = 'short' WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
    )
    assert capture.read() == [row(1, names[1], 5.0), row(2, names[2], 5.0), row(1, "short", 5.0), (2, None)]
    capture.close()


def test_without_it_a_row_that_is_gone_has_only_its_deletion(database: Database) -> None:
    database.run(
        TABLE,
        "ALTER TABLE orders ALTER name SET STORAGE EXTERNAL",
        f"INSERT INTO orders SELECT g, {LONG % 'g'} FROM generate_series(1, 3) g",
    )
    third = database.value("SELECT name FROM orders WHERE id = 3")
    capture = orders(database)
    capture.read()
    database.run(
        "UPDATE orders SET amount = 5", "DELETE FROM orders WHERE id = 2", "UPDATE orders SET id = 9 WHERE id = 1"
    )
    first = database.value("SELECT name FROM orders WHERE id = 9")
    assert capture.read() == [row(3, third, 5.0), (2, None), (1, None), row(9, first, 5.0)]
    capture.close()


@contextmanager
def commits_that_wait(database: Database) -> Iterator[None]:
    """Let commits wait for a standby that does not exist: they are in the log, and not visible."""
    database.run("ALTER SYSTEM SET synchronous_standby_names = 'absent'", "SELECT pg_reload_conf()")
    while database.value("SHOW synchronous_standby_names") != "absent":
        sleep(0.01)
    try:
        yield
    finally:
        database.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")


def test_a_long_column_of_a_row_that_is_not_visible_yet_is_awaited(database: Database) -> None:
    database.run(
        TABLE,
        "ALTER TABLE orders ALTER name SET STORAGE EXTERNAL",
        f"INSERT INTO orders SELECT g, {LONG % 'g'} FROM generate_series(1, 2) g",
    )
    name = database.value("SELECT name FROM orders WHERE id = 2")
    capture = orders(database)
    capture.read()
    with psycopg.connect(database.url, autocommit=True) as other, ThreadPoolExecutor(2) as threads:
        with commits_that_wait(database):
            update = threads.submit(other.execute, "UPDATE orders SET id = 20 WHERE id = 2")
            read = threads.submit(capture.next_changes)  # blocks: the row with the key 20 is not there
            sleep(1)
            assert database.rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]
            assert not read.done()
        update.result()
        assert [*read.result(), *capture.read()] == [(2, None), row(20, name)]
    capture.close()


def test_added_columns_are_passed_over_and_appear_in_dicts(database: Database) -> None:
    database.run(TABLE)
    typed = orders(database)
    typed.read()
    with captured(
        database, source(database, "orders", key="id", key_type=int, slot=f"{database.name}_dict")
    ) as untyped:
        untyped.read()
        database.run(
            "INSERT INTO orders VALUES (1, 'a')",
            "ALTER TABLE orders ADD COLUMN city text DEFAULT 'Bern'",
            "INSERT INTO orders VALUES (2, 'b')",
        )
        assert typed.read() == [row(1, "a"), row(2, "b")]
        assert untyped.read() == [row(1, "a"), (2, {**row(2, "b")[1], "city": "Bern"})]
    typed.close()


def test_a_dropped_column_is_none_if_its_field_may_be_and_otherwise_an_error(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    database.run(
        "INSERT INTO orders VALUES (1, 'a')", "ALTER TABLE orders DROP COLUMN name", "INSERT INTO orders VALUES (2)"
    )
    assert capture.read() == [row(1, "a"), row(2, None)]
    capture.reopen()
    assert capture.read() == []
    database.run("ALTER TABLE orders RENAME amount TO price", "INSERT INTO orders VALUES (3, 7)")
    with pytest.raises(ConnectorError, match=r"public\.orders no longer has the column 'amount'.*id, price"):
        capture.read()
    capture.close()


def test_a_renamed_table_is_read_on(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    database.run("ALTER TABLE orders RENAME TO purchases", "INSERT INTO purchases VALUES (1, 'a')")
    assert capture.read() == [row(1, "a")]
    capture.close()
    database.run("INSERT INTO purchases VALUES (2, 'b')")
    with captured(database, source(database, "purchases", Order, key="id"), capture.position) as renamed:
        assert renamed.read() == [row(2, "b")]


def test_a_truncation_is_an_error_or_ignored(database: Database) -> None:
    database.run(TABLE, "INSERT INTO orders VALUES (1, 'a')")
    capture = orders(database)
    capture.read()
    database.run("TRUNCATE orders", "INSERT INTO orders VALUES (2, 'b')")
    with pytest.raises(ConnectorError, match=r"The table public\.orders was truncated.*truncate='ignore'"):
        capture.read()
    capture.close()
    reading = source(database, "orders", Order, key="id", truncate="ignore")
    with captured(database, reading, capture.position) as ignoring:
        assert ignoring.read() == [row(2, "b")]


def test_a_partitioned_table_is_one_table(database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, name text, amount float8 NOT NULL DEFAULT 0) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF orders FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE high PARTITION OF orders FOR VALUES FROM (100) TO (200)",
        "INSERT INTO orders VALUES (150, 'h'), (50, 'l')",
    )
    capture = orders(database)
    assert capture.read() == [row(50, "l"), row(150, "h")]
    database.run("UPDATE orders SET id = 151 WHERE id = 50", "INSERT INTO orders VALUES (1, 'new')")
    assert capture.read() == [(50, None), row(151, "l"), row(1, "new")]
    capture.close()


def test_a_key_of_several_columns_is_a_class_or_a_dict(database: Database) -> None:
    class ItemKey(msgspec.Struct):
        number: int
        shop: str

    database.run(
        "CREATE TABLE items (shop text, number int, price float8, PRIMARY KEY (shop, number))",
        "INSERT INTO items VALUES ('b', 1, 2.5), ('a', 2, 1.5)",
    )
    with (
        captured(database, source(database, "items", key_type=ItemKey)) as typed,
        captured(database, source(database, "items", slot=f"{database.name}_dict")) as untyped,
    ):
        keys = [{"shop": "a", "number": 2}, {"shop": "b", "number": 1}]
        assert [key for key, _ in typed.read()] == [key for key, _ in untyped.read()] == keys
        database.run("UPDATE items SET number = 12 WHERE shop = 'a'")
        keys = [{"shop": "a", "number": 2}, {"shop": "a", "number": 12}]
        assert [key for key, _ in typed.read()] == [key for key, _ in untyped.read()] == keys
    with pytest.raises(ConnectorError, match=r"has the columns shop, number: declare key_type="):
        Capture(database, source(database, "items", key_type=str))


class Everything(msgspec.Struct):
    id: int
    small: int
    real: float
    exact: Decimal
    yes: bool
    blob: bytes
    at: datetime
    at_zone: datetime
    day: str
    doc: dict[str, int]
    raw_doc: str
    tags: list[str | None]
    grid: list[list[int]]
    mood: str


def test_types_are_read_from_the_snapshot_and_from_changes_alike(database: Database) -> None:
    database.run(
        "CREATE TYPE mood AS ENUM ('happy', 'so so')",
        "CREATE DOMAIN positive AS numeric CHECK (VALUE > 0)",
        "CREATE TABLE everything (id int8 PRIMARY KEY, small int2, real float8, exact positive, yes bool, blob bytea, "
        "at timestamp, at_zone timestamptz, day date, doc jsonb, raw_doc json, tags text[], grid int[][], mood mood)",
    )
    values = (
        "(%d, -7, 'NaN', 12345678901234567890.1234567890, true, '\\x00ff10', '2026-02-03 04:05:06.789', "
        "'2026-02-03 04:05:06+02', 'infinity', '{\"a\": 1}', '[1, {\"b\": null}]', "
        "ARRAY['x,y', NULL, 'NULL', E'q\"\\\\', 'line\nbreak', ''], '{{1,2},{3,4}}', 'so so')"
    )
    database.run(f"INSERT INTO everything VALUES {values % 1}")
    with captured(database, source(database, "everything", Everything, key="id")) as capture:
        ((_, first),) = capture.read()
        database.run(f"INSERT INTO everything VALUES {values % 1}".replace("(1,", "(2,"))
        ((_, second),) = capture.read()
    assert str(first.pop("real")) == str(second.pop("real")) == "nan"
    assert first == {
        "id": 1,
        "small": -7,
        "exact": "12345678901234567890.1234567890",
        "yes": True,
        "blob": b"\x00\xff\x10",
        "at": datetime(2026, 2, 3, 4, 5, 6, 789_000),
        "at_zone": datetime(2026, 2, 3, 2, 5, 6, tzinfo=UTC),
        "day": "infinity",
        "doc": [("a", 1)],
        "raw_doc": '[1, {"b": null}]',
        "tags": ["x,y", None, "NULL", 'q"\\', "line\nbreak", ""],
        "grid": [[1, 2], [3, 4]],
        "mood": "so so",
    }
    assert second == {**first, "id": 2}


def test_what_is_created_is_named_in_the_log_with_the_statement_that_removes_it(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.run(TABLE)
    with caplog.at_level(logging.INFO, "kstreams"):
        orders(database).close()
    drop = f"SELECT pg_drop_replication_slot('{database.name}'); DROP PUBLICATION IF EXISTS \"{database.name}\";"
    assert f"created the publication {database.name}" in caplog.text
    assert f"created the replication slot {database.name}" in caplog.text
    assert caplog.text.count(drop) == 2
    assert "postgres:postgres" not in caplog.text
    database.run(*drop.split("; "))


def test_positions_that_the_slot_no_longer_has_are_errors(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    capture.close()
    old = capture.position
    database.run("INSERT INTO orders VALUES (1, 'a')")
    with captured(database, capture.source, old) as other:
        other.read()
    with pytest.raises(ConnectorError, match=r"another reader has used the slot"):
        Capture(database, capture.source, old)
    with pytest.raises(ConnectorError, match=r"This is another database server"):
        Capture(database, capture.source, {**old, "system": "1"})
    database.run("DROP TABLE orders", TABLE)
    with pytest.raises(ConnectorError, match=r"was dropped and created anew"):
        Capture(database, capture.source, other.position)
    database.rows(f"SELECT pg_drop_replication_slot('{database.name}')")
    database.run("DROP TABLE orders", TABLE, f"DROP PUBLICATION {database.name}")
    with pytest.raises(ConnectorError, match=r"The replication slot 'test_\d+' is gone"):
        Capture(database, capture.source, {**other.position, "tables": {}})


def test_a_slot_that_another_process_reads_is_tried_again(database: Database) -> None:
    database.run(TABLE)
    capture = orders(database)
    capture.read()
    database.run("INSERT INTO orders VALUES (1, 'a')")
    assert capture.read() == [row(1, "a")]
    with pytest.raises(ConnectorUnavailableError, match=r"is active for PID"):
        Capture(database, capture.source, capture.position)
    capture.close()


@pytest.mark.parametrize(
    ("table", "statement", "message"),
    [
        ("purchases", "", r"no table 'purchases'"),
        ("order", "", r"Did you mean 'orders'\?"),
        (
            "orders",
            "ALTER TABLE orders DROP CONSTRAINT orders_pkey",
            r"has no primary key.*REPLICA IDENTITY USING INDEX",
        ),
        ("orders", "ALTER TABLE orders REPLICA IDENTITY NOTHING", r"REPLICA IDENTITY DEFAULT"),
        ("orders", "ALTER TABLE orders RENAME name TO names", r"no column 'name'; did you mean 'names'\?"),
        (
            "orders",
            "ALTER TABLE orders DROP name, ADD name text GENERATED ALWAYS AS ('x') STORED",
            r"'name' of public\.orders is generated",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_created(
    database: Database, table: str, statement: str, message: str
) -> None:
    database.run(TABLE, *filter(None, [statement]))
    with pytest.raises(ConnectorError, match=message):
        Capture(database, source(database, table, Order, key="id"))
    assert database.rows("SELECT 1 FROM pg_publication") == []


def test_a_value_that_does_not_fit_names_the_column_and_the_row(database: Database) -> None:
    class Strict(msgspec.Struct):
        id: int
        name: str

    database.run(TABLE, "INSERT INTO orders VALUES (7, NULL)")
    capture = Capture(database, source(database, "orders", Strict, key="id"))
    with pytest.raises(ConnectorError, match=r"'name' of public\.orders is null in the row with the key 7"):
        capture.read()
    capture.close()


def test_passwords_are_in_no_message(database: Database) -> None:
    wrong = ks.sources.postgres(database.url.replace(":postgres@", ":tiger@"), "orders")
    assert "tiger" not in repr(wrong)
    with pytest.raises(ConnectorError, match=r"password authentication failed") as refused:
        Capture(database, wrong)
    assert "tiger" not in str(refused.value)
    assert not isinstance(refused.value, ConnectorUnavailableError)
    with pytest.raises(ConnectorUnavailableError):
        Capture(database, ks.sources.postgres("postgresql://me:tiger@127.0.0.1:1/x", "orders"))
