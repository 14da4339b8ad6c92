"""What a SQL sink does with records. The tables are read by the drivers of the databases."""

from __future__ import annotations

import pickle
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.errors import ConnectorError, ConnectorUnavailableError, FencedError
from tests.connectors.sql.databases import EmptyDatabase
from tests.connectors.sql.records import batch, committed, opened, written

EURO = {"amount": 1.5, "currency": "EUR"}
DOLLAR = {"amount": 2.5, "currency": "USD"}
PRICES = "SELECT item, amount, currency FROM prices ORDER BY item"


def upsert(database: EmptyDatabase, **settings: Any) -> Any:
    return ks.sinks.sql(database.url, "prices", mode="upsert", key="item", **settings)


def test_a_record_changes_the_row_of_its_key_and_a_null_deletes_it(database: EmptyDatabase) -> None:
    written(upsert(database), batch(["tea", "rum", "ale"], [EURO, EURO, EURO]))
    written(upsert(database), batch(["tea", "rum", "gin"], [DOLLAR, None, EURO], first_offset=3))
    assert database.rows(PRICES) == [("ale", 1.5, "EUR"), ("gin", 1.5, "EUR"), ("tea", 2.5, "USD")]


def test_several_changes_of_a_key_become_the_last(database: EmptyDatabase) -> None:
    keys = ["tea", "rum", "tea", "rum", "tea", "gin", "gin"]
    written(upsert(database), batch(keys, [EURO, EURO, None, DOLLAR, DOLLAR, EURO, None]))
    assert database.rows(PRICES) == [("rum", 2.5, "USD"), ("tea", 2.5, "USD")]


def test_the_target_says_where_to_go_on(database: EmptyDatabase) -> None:
    first = opened(upsert(database))
    assert first.next_offset() is None
    committed(first, batch(["tea"], [EURO], first_offset=41))
    first.close()
    assert opened(upsert(database)).next_offset() == 42
    assert opened(upsert(database), partition=1).next_offset() is None
    assert opened(upsert(database), connector="other").next_offset() is None


def test_nothing_is_visible_before_the_commit(database: EmptyDatabase) -> None:
    written(upsert(database), batch(["tea"], [EURO]))
    writer = opened(upsert(database))
    writer.write(batch(["tea", "rum"], [DOLLAR, DOLLAR], first_offset=1))
    writer.flush()
    assert database.rows(PRICES) == [("tea", 1.5, "EUR")]
    writer.close()
    assert database.rows(PRICES) == [("tea", 1.5, "EUR")]
    assert opened(upsert(database)).next_offset() == 1


def test_a_zombie_cannot_commit(database: EmptyDatabase) -> None:
    written(upsert(database), batch(["tea"], [EURO]))
    zombie = opened(upsert(database))
    if database.name != "sqlite":  # which has one writer at a time: the zombie would hold back its successor
        zombie.write(batch(["tea", "rum"], [DOLLAR, DOLLAR], first_offset=1))
    successor = opened(upsert(database))
    with pytest.raises(FencedError, match="opened again elsewhere"):
        committed(zombie, batch(["ale"], [DOLLAR], first_offset=3))
    assert successor.next_offset() == 1
    committed(successor, batch(["gin"], [EURO], first_offset=1))
    assert database.rows(PRICES) == [("gin", 1.5, "EUR"), ("tea", 1.5, "EUR")]


def test_a_zombie_with_locks_does_not_hold_back_its_successor(postgres: EmptyDatabase) -> None:
    written(upsert(postgres), batch(["tea"], [EURO]))
    zombie = opened(upsert(postgres))
    zombie.write(batch(["tea"], [DOLLAR], first_offset=1))
    zombie.flush()
    successor = opened(upsert(postgres))
    committed(successor, batch(["tea"], [None], first_offset=1))
    with pytest.raises(FencedError):
        zombie.commit(2)
    assert postgres.rows(PRICES) == []


def test_insert_adds_a_row_per_record_and_ignores_nulls(database: EmptyDatabase) -> None:
    written(ks.sinks.sql(database.url, "prices"), batch(["a", "a", "a"], [EURO, EURO, None]))
    assert database.rows("SELECT * FROM prices") == [(1.5, "EUR"), (1.5, "EUR")]


def test_refused_rows_are_reported_and_the_others_go_in(database: EmptyDatabase) -> None:
    database.rows(
        "CREATE TABLE prices (item VARCHAR(100) PRIMARY KEY, amount DOUBLE PRECISION CHECK (amount < 100), "
        "currency VARCHAR(3))"
    )
    values = [{"amount": float(number), "currency": "EUR"} for number in range(300)]
    values[7]["amount"] = values[8]["amount"] = values[250]["amount"] = 1000.0
    items = [f"item {number:03}" for number in range(300)]
    refused = written(
        upsert(database), batch(items[:100] + items[200:], values[:100] + [EURO] * 50 + values[250:251] + [EURO] * 49)
    )
    assert [row.offset for row in refused] == [7, 8, 150]
    assert all("amount" in str(row.error) or "CHECK" in str(row.error) for row in refused)
    assert database.rows("SELECT count(*), max(amount) FROM prices") == [(197, 99.0)]
    assert opened(upsert(database)).next_offset() == 200


def test_the_change_before_a_refused_one_of_its_key_stays(database: EmptyDatabase) -> None:
    database.rows(
        "CREATE TABLE prices (item VARCHAR(9) PRIMARY KEY, amount FLOAT CHECK (amount < 5), currency VARCHAR(3))"
    )
    wrong = {"amount": 9.0, "currency": "EUR"}
    refused = written(upsert(database), batch(["tea", "rum", "tea", "rum", "rum"], [EURO, EURO, wrong, DOLLAR, wrong]))
    assert [row.offset for row in refused] == [2, 4]
    assert database.rows(PRICES) == [("rum", 2.5, "USD"), ("tea", 1.5, "EUR")]


def test_a_record_without_a_key_is_refused(database: EmptyDatabase) -> None:
    [refused] = written(upsert(database), batch([None, "tea"], [EURO, EURO]))
    assert refused.offset == 0
    assert "no value for the key (item)" in str(refused.error)
    assert database.rows(PRICES) == [("tea", 1.5, "EUR")]


def test_the_database_converts_texts_and_refuses_what_is_none(postgres: EmptyDatabase) -> None:
    postgres.rows("CREATE TABLE prices (item text PRIMARY KEY, amount numeric(6, 2), currency uuid)")
    kind = pa.struct([("amount", pa.string()), ("currency", pa.string())])
    good = {"amount": "12.345", "currency": "00000000-0000-0000-0000-000000000001"}
    bad = {"amount": "a lot", "currency": None}
    null_byte = {"amount": "1", "currency": "\0"}
    refused = written(upsert(postgres), batch(["tea", "rum", "gin"], [good, bad, null_byte], value_type=kind))
    assert [row.offset for row in refused] == [1, 2]
    assert postgres.rows("SELECT item, amount FROM prices") == [("tea", Decimal("12.35"))]


def test_a_trigger_and_a_constraint_checked_at_the_end_refuse_rows(postgres: EmptyDatabase) -> None:
    postgres.rows(
        "CREATE TABLE currencies (code text PRIMARY KEY); INSERT INTO currencies VALUES ('EUR');"
        "CREATE TABLE prices (item text PRIMARY KEY, amount float8, currency text REFERENCES currencies "
        "DEFERRABLE INITIALLY DEFERRED);"
        "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN IF NEW.item = 'rum' THEN RAISE 'no rum'; END IF; "
        "RETURN NEW; END $$ LANGUAGE plpgsql;"
        "CREATE TRIGGER refuse BEFORE INSERT ON prices FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    refused = written(upsert(postgres), batch(["tea", "rum", "gin"], [EURO, EURO, DOLLAR]))
    assert [row.offset for row in refused] == [1, 2]
    assert postgres.rows("SELECT item FROM prices") == [("tea",)]


def test_types_arrive_as_they_are(database: EmptyDatabase) -> None:
    when = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    row = {
        "flag": True, "small": -7, "big": 2**62, "ratio": 0.1, "text": 'ä "q", \n\\.', "empty": "", "none": None,
        "raw": b"\x00\xff", "moment": when, "day": date(2024, 5, 6), "price": Decimal("12.50"), "tags": ["a", "b"],
        "nested": {"x": 1},
    }  # fmt: skip
    kind = pa.struct(
        [
            ("flag", pa.bool_()), ("small", pa.int32()), ("big", pa.int64()), ("ratio", pa.float64()),
            ("text", pa.string()), ("empty", pa.string()), ("none", pa.string()), ("raw", pa.binary()),
            ("moment", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("price", pa.decimal128(10, 2)),
            ("tags", pa.list_(pa.string())), ("nested", pa.struct([("x", pa.int64())])),
        ]
    )  # fmt: skip
    sink = ks.sinks.sql(database.url, "everything", mode="upsert", key="id")
    assert written(sink, batch([1], [row], key_type=pa.int64(), value_type=kind)) == []
    plain = "flag, small, big, ratio, text, empty, none, raw, CAST(price AS DOUBLE PRECISION), CAST(day AS VARCHAR(10))"
    assert database.rows(f"SELECT {plain} FROM everything") == [
        (True, -7, 2**62, 0.1, 'ä "q", \n\\.', "", None, b"\x00\xff", 12.5,
         "2024-05-06")
    ]  # fmt: skip
    texts = "CAST(moment AS VARCHAR(26)), CAST(tags AS VARCHAR(20)), CAST(nested AS VARCHAR(20))"
    [(moment, tags, nested)] = database.rows(f"SELECT {texts} FROM everything")
    assert moment.removesuffix("+00") == "2024-05-06 07:08:09.123456"
    assert (tags.replace(" ", ""), nested.replace(" ", "")) == ('["a","b"]', '{"x":1}')


def test_decimals_of_any_precision_fit_a_table_that_the_first_ones_made(database: EmptyDatabase) -> None:
    for offset, (digits, price) in enumerate([((3, 1), "12.5"), ((9, 4), "99999.1234")]):
        kind = pa.struct([("price", pa.decimal128(*digits))])
        row = {"price": Decimal(price)}
        sink = ks.sinks.sql(database.url, "decimals", mode="upsert", key="id")
        assert written(sink, batch([offset], [row], key_type=pa.int64(), value_type=kind, first_offset=offset)) == []
    prices = "SELECT CAST(price AS DOUBLE PRECISION) FROM decimals ORDER BY id"
    assert database.rows(prices) == [(12.5,), (99999.1234,)]


def test_many_and_large_rows_do_not_wait_for_the_flush(postgres: EmptyDatabase) -> None:
    writer = opened(ks.sinks.postgres(postgres.url, "texts"))
    for number in range(70):
        writer.write(batch(["a"], [{"amount": 1.0, "currency": "x" * 2**20}], first_offset=number))
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()"
    )
    assert postgres.rows(waiting) == [(1,)]  # rows are in a transaction of the server
    writer.flush()
    writer.commit(70)
    writer.close()
    assert postgres.rows("SELECT count(*), sum(length(currency)) FROM texts") == [(70, 70 * 2**20)]


def test_keys_with_several_columns_come_from_a_key_with_fields_or_from_the_value(database: EmptyDatabase) -> None:
    key_type = pa.struct([("shop", pa.string()), ("item", pa.int64())])
    by_key = ks.sinks.sql(database.url, "prices", mode="upsert", key=["shop", "item"])
    keys = [{"shop": "a", "item": 1}, {"shop": "a", "item": 2}, {"shop": "a", "item": 1}]
    written(by_key, batch(keys, [EURO, EURO, None], key_type=key_type))
    assert database.rows("SELECT shop, item, amount FROM prices") == [("a", 2, 1.5)]
    by_value = ks.sinks.sql(database.url, "latest", mode="upsert", key="currency", pk_mode="record_value")
    [refused] = written(by_value, batch(["x", "y", "z"], [EURO, {**EURO, "amount": 9.0}, None]), connector="latest")
    assert refused.offset == 2
    assert database.rows("SELECT currency, amount FROM latest") == [("EUR", 9.0)]


def test_names_are_identifiers_whatever_they_hold(database: EmptyDatabase) -> None:
    table = 'prices"; DROP TABLE victims; --'
    column = 'a"b:c %s %% ?); DROP TABLE victims; --'
    database.rows("CREATE TABLE victims (n INTEGER)")
    sink = ks.sinks.sql(database.url, table, mode="upsert", key="k'); --", auto_evolve=True)
    one_column = pa.struct([(column, pa.int64())])
    written(sink, batch(["'; DROP TABLE victims"], [{column: 1}], value_type=one_column))
    two_columns = pa.struct([(column, pa.int64()), (column + "2", pa.int64())])
    written(
        sink, batch(["'; DROP TABLE victims"], [{column: 2, column + "2": 3}], value_type=two_columns, first_offset=1)
    )
    written(
        sink, batch(["other", "other"], [{column: 2, column + "2": 3}, None], value_type=two_columns, first_offset=2)
    )
    quoted = '"' + table.replace('"', '""') + '"'
    assert database.rows(f"SELECT * FROM {quoted}") == [("'; DROP TABLE victims", 2, 3)]
    assert database.rows("SELECT count(*) FROM victims") == [(0,)]


def test_new_fields_become_columns_if_the_sink_may_add_them(database: EmptyDatabase) -> None:
    amount_only = pa.struct([("amount", pa.float64())])
    written(upsert(database), batch(["tea"], [{"amount": 1.0}], value_type=amount_only))
    with pytest.raises(ConnectorError, match=r"lacks columns.*ALTER TABLE.*currency.*auto_evolve=True"):
        written(upsert(database), batch(["rum"], [EURO], first_offset=1))
    writer = opened(upsert(database, auto_evolve=True))
    writer.write(batch(["gin"], [{"amount": 3.0}], value_type=amount_only, first_offset=1))
    writer.flush()
    writer.write(batch(["rum"], [EURO], first_offset=2))
    writer.flush()
    writer.commit(3)
    assert database.rows(PRICES) == [("gin", 3.0, None), ("rum", 1.5, "EUR"), ("tea", 1.0, None)]


def test_a_table_is_created_only_if_the_sink_may(database: EmptyDatabase) -> None:
    with pytest.raises(ConnectorError, match=r"does not exist. Create it \(CREATE TABLE .*amount.*auto_create=True"):
        written(upsert(database, auto_create=False), batch(["tea"], [EURO]))


def test_a_table_without_the_key_is_an_error_that_says_so(postgres: EmptyDatabase) -> None:
    postgres.rows("CREATE TABLE prices (item text, amount float8, currency text)")
    with pytest.raises(ConnectorError, match="no unique or exclusion constraint"):
        written(upsert(postgres), batch(["tea"], [EURO]))


def test_tasks_write_beside_each_other(database: EmptyDatabase) -> None:
    """Four tasks of one table, each in a thread, from the creation of the table on."""
    errors: list[BaseException] = []

    def run(partition: int) -> None:
        try:
            first = 0
            while first < 400:
                try:
                    writer = opened(upsert(database), partition=partition)
                    first = writer.next_offset() or 0
                    while first < 400:
                        items = [f"{partition}/{first + number}" for number in range(100)]
                        committed(writer, batch(items, [EURO] * 100, first_offset=first))
                        first += 100
                    writer.close()
                except ConnectorUnavailableError:
                    writer.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[partition]) for partition in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert database.rows("SELECT count(*), count(DISTINCT item) FROM prices") == [(1600, 1600)]


def test_a_target_that_is_away_is_unavailable(tmp_path: Path) -> None:
    sink = ks.sinks.postgres("postgresql://ada:sesame@127.0.0.1:1/shop", "prices", upsert="item")
    with pytest.raises(ConnectorUnavailableError) as caught:
        opened(sink)
    assert "sesame" not in str(caught.value)
    assert "ada:***@127.0.0.1:1/shop" in str(caught.value)
    with pytest.raises(ConnectorUnavailableError, match="unable to open database file"):
        opened(ks.sinks.sql(f"sqlite:///{tmp_path}/absent/x.db", "prices"))


def test_a_sink_describes_itself_without_its_password_and_can_be_pickled() -> None:
    sink = ks.sinks.postgres("postgres://ada:sesame@db.example/shop?sslmode=require", "prices", upsert="key")
    assert repr(sink) == "SqlSink(postgres://ada:***@db.example/shop?sslmode=require, 'prices', mode='upsert')"
    assert repr(pickle.loads(pickle.dumps(sink))) == repr(sink)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "upsert"}, "needs the columns of the key"),
        ({"mode": "replace"}, "mode='replace' is not known: write one of 'insert', 'upsert'"),
        ({"pk_mode": "kafka"}, "pk_mode='kafka' is not known"),
    ],
)
def test_wrong_declarations_say_what_to_write(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConnectorError, match=message):
        ks.sinks.sql("sqlite:///x.db", "prices", **settings)


def test_an_address_that_is_none_says_how_to_write_it() -> None:
    with pytest.raises(ConnectorError, match="no address of a database: write it as postgresql://"):
        ks.sinks.sql("shop.db", "prices")
