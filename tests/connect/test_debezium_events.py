"""Events of Debezium 3.7, as they came, are changes of rows with values of Python."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import uuid
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.serdes import serde_named, type_name
from kstreams.testing import TopologyTestDriver
from tests.connect.recorded import PLACEHOLDER, envelope, of_case, recorded

ITEMS = "debezium_items.jsonl"
TYPES = "debezium_types.jsonl"
Money = Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]


@dataclass(frozen=True)
class Item:
    id: int
    name: str
    price: Money | None
    day: dt.date | None
    at: dt.datetime | None
    seen: dt.datetime | None
    more: str | None


TEA = Item(
    id=1,
    name="tea",
    price=Decimal("1.50"),
    day=dt.date(2026, 1, 2),
    at=dt.datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=dt.UTC),
    seen=dt.datetime(2026, 1, 2, 3, 4, 5, 678_901),
    more='{"a": 1}',
)
JAM = Item(2, "jam", None, None, None, None, None)
KEY_ONLY = Item(0, "", None, None, None, None, None)


def change(case: str, serde: ks.Debezium[Any] | None = None) -> ks.RowChange[Any]:
    [event] = [event for event in of_case(ITEMS, case) if event.topic != "shop.public.whole"]
    assert event.value is not None
    return (serde or ks.Debezium(Item)).deserialize(event.value)


@pytest.mark.parametrize(
    ("case", "operation", "before", "after"),
    [
        ("snapshot", "read", None, TEA),
        ("insert", "create", None, JAM),
        ("update", "update", None, replace(TEA, price=Decimal("2.25"))),
        ("key change: delete", "delete", replace(KEY_ONLY, id=2), None),
        ("key change: insert", "create", None, replace(JAM, id=3)),
        ("delete", "delete", replace(KEY_ONLY, id=1), None),
        ("truncate (skipped.operations=none)", "truncate", None, None),
        ("snapshot, schemas.enable=true, decimal.handling.mode=string", "read", None, TEA),
    ],
)
def test_each_operation(case: str, operation: str, before: Item | None, after: Item | None) -> None:
    read = change(case)
    assert (read.operation, read.before, read.after, read.unavailable) == (operation, before, after, ())


def test_replica_identity_full_has_the_row_before() -> None:
    serde = ks.Debezium(Item)
    events = [event.value for event in recorded(ITEMS) if event.topic == "shop.public.whole" and event.value]
    update, delete = map(serde.deserialize, events[1:])
    assert (update.before, update.after) == (TEA, replace(TEA, price=Decimal("2.25")))
    assert (delete.before, delete.after) == (update.after, None)


def test_the_source_names_the_place_in_the_database() -> None:
    source = change("update").source
    assert (source.connector, source.name, source.db, source.schema, source.table) == (
        ("postgresql", "shop", "postgres", "public", "items")
    )
    assert (source.lsn, source.tx_id, source.snapshot) == (22233192, 730, "false")
    assert source.ts_ms == 1795609326666
    assert change("snapshot").source.snapshot == "first"


def test_a_changed_key_is_a_delete_and_an_insert_with_one_lsn() -> None:
    assert change("key change: delete").source.lsn == change("key change: insert").source.lsn


def test_a_change_has_its_place_in_the_transaction() -> None:
    [event] = of_case(TYPES, "wide unchanged")
    assert event.value is not None
    transaction = ks.Debezium(dict[str, Any]).deserialize(event.value).transaction
    assert transaction is not None
    assert (transaction.total_order, transaction.data_collection_order) == (1, 1)
    assert transaction.id.endswith(":" + transaction.id.split(":")[1])


def test_unwrapped_rows_are_for_connect_json() -> None:
    with pytest.raises(SerdeError, match=r"no envelope of Debezium .* ks\.ConnectJson"):
        change("ExtractNewRecordState: update")
    [event] = of_case(ITEMS, "ExtractNewRecordState: update")
    assert event.value is not None
    assert ks.ConnectJson().deserialize(event.value)["name"] == "coffee"


@dataclass
class Types:
    """Every type of column, for each way in which the connector writes times and decimals."""

    id: int
    price: Money | None
    free: Decimal | None
    day: dt.date | None
    clock: dt.time | None
    seen: Annotated[dt.datetime, msgspec.Meta(tz=False)] | None
    seen3: Annotated[dt.datetime, msgspec.Meta(tz=False, extra={"unit": "ms"})] | None
    at: dt.datetime | None
    zoned: dt.time | None
    lasted: dt.timedelta | None
    ok: bool | None
    big: int | None
    r: float | None
    d: float | None
    raw: bytes | None
    tag: uuid.UUID | None
    doc: str | None
    words: list[str] | None
    numbers: list[int] | None


MODES: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "schemas": {},
    "texts": {"decimals": "string", "times": "isostring"},
    "connect": {"decimals": "double", "times": "connect"},
    "nanos": {"times": "nanoseconds"},
}


def rows_of(mode: str, kind: str = "change") -> list[Any]:
    serde = ks.Debezium(Types, **MODES[mode])
    events = of_case(TYPES, f"{mode} {kind}")
    return [serde.deserialize(event.value).after for event in events if event.value]


@pytest.mark.parametrize("mode", MODES)
def test_every_type_of_column_in_every_mode_of_the_connector(mode: str) -> None:
    row = rows_of(mode)[0]
    seconds = dt.timedelta(microseconds=901) if mode == "connect" else dt.timedelta(0)  # milliseconds only
    utc = dt.UTC if mode == "texts" else None
    assert row.price == Decimal("1.50")
    assert row.free == Decimal("12.345")
    assert row.day == dt.date(2026, 1, 2)
    assert row.clock == (dt.datetime(2026, 1, 2, 3, 4, 5, 678_901) - seconds).time().replace(tzinfo=utc)
    assert row.seen == dt.datetime(2026, 1, 2, 3, 4, 5, 678_901) - seconds
    assert row.seen3 == dt.datetime(2026, 1, 2, 3, 4, 5, 678_000)
    assert row.at == dt.datetime(2026, 1, 2, 1, 4, 5, 678_901, tzinfo=dt.UTC)
    assert row.zoned == dt.time(1, 4, 5, tzinfo=dt.UTC)
    assert row.lasted == dt.timedelta(days=1, hours=2)
    assert (row.ok, row.big, row.r, row.d, row.raw) == (True, 9007199254740993, 1.5, 2.5, b"\x01\x02")
    assert row.tag == uuid.UUID("6b7f6a4e-4a43-4d5c-9a43-5e3f3a3d9a10")
    assert (row.doc, row.words, row.numbers) == ('{"a": 1}', ["a", "b"], [1, 2])


@pytest.mark.parametrize(
    ("mode", "kind"), [("adaptive", "snapshot"), ("texts", "snapshot"), *((mode, "change") for mode in MODES)]
)
def test_infinities_are_the_last_and_first_times_of_python(mode: str, kind: str) -> None:
    after, before = rows_of(mode, kind)[1:]
    assert (after.day, before.day) == (dt.date.max, dt.date.min)
    assert (after.seen, before.seen) == (dt.datetime.max, dt.datetime.min)
    assert (after.seen3, before.seen3) == (dt.datetime.max, dt.datetime.min)
    assert after.at == dt.datetime.max.replace(tzinfo=dt.UTC)
    assert before.at == dt.datetime.min.replace(tzinfo=dt.UTC)
    assert math.isnan(after.r)
    assert (after.d, before.r, before.d) == (math.inf, -math.inf, -math.inf)
    assert (after.price, after.free) == (Decimal("-0.01"), Decimal("-7"))


@pytest.mark.parametrize("mode", ["schemas", "connect", "nanos"])
def test_a_schema_says_it_all_without_a_class_or_options(mode: str) -> None:
    [event] = of_case(TYPES, f"{mode} change")[:1]
    assert event.value is not None
    change = ks.Debezium().deserialize(event.value)
    assert change.after["day"] == dt.date(2026, 1, 2)
    assert change.after["price"] == (1.5 if mode == "connect" else Decimal("1.50"))
    assert change.after["seen3"] == dt.datetime(2026, 1, 2, 3, 4, 5, 678_000)


@pytest.mark.parametrize("mode", MODES)
def test_changes_are_written_and_read_back(mode: str) -> None:
    serde = ks.Debezium(Types, **MODES[mode])
    event = of_case(TYPES, f"{mode} change")[0]
    assert event.value is not None
    change = serde.deserialize(event.value)
    assert serde.deserialize(serde.serialize(change)) == change
    assert pickle.loads(pickle.dumps(serde)) == serde


def test_decimals_are_not_guessed() -> None:
    numeric = envelope("c", 1, {"id": 1, "name": "a", "price": "1234"} | dict.fromkeys(("day", "at", "seen", "more")))
    assert ks.Debezium(Item).deserialize(numeric).after.price == Decimal("-26588.24")  # Base64
    assert ks.Debezium(Item, decimals="string").deserialize(numeric).after.price == Decimal("1234")
    digits = numeric.replace(b'"1234"', b'"1.50"')
    with pytest.raises(
        SerdeError, match=r"field price: '1.50' is no decimal in Base64: declare that decimals are text"
    ):
        ks.Debezium(Item).deserialize(digits)


def test_a_time_that_python_lacks_is_an_error_or_a_number() -> None:
    @dataclass
    class Far:
        day: dt.date

    @dataclass
    class Number:
        day: int

    far = envelope("c", 1, {"day": 6585322})
    with pytest.raises(SerdeError, match=r"field day: 6585322 is no date of Python .* declare the field as int"):
        ks.Debezium(Far).deserialize(far)
    assert ks.Debezium(Number).deserialize(far).after == Number(6585322)


@dataclass(frozen=True)
class Wide:
    id: int
    n: int
    body: str
    raw: bytes
    doc: str
    words: list[str]
    numbers: list[int]
    uuids: list[uuid.UUID]
    dates: list[dt.date]


LARGE = ("body", "raw", "doc", "words", "numbers", "uuids", "dates")


@pytest.mark.parametrize("case", ["wide unchanged", "wideschemas unchanged"])
def test_an_unchanged_large_column_is_named_and_never_the_placeholder(case: str) -> None:
    [event] = of_case(TYPES, case)
    assert event.value is not None
    serde = ks.Debezium(Wide)
    change = serde.deserialize(event.value)
    assert change.unavailable == LARGE
    assert [getattr(change.after, name) for name in LARGE] == [None] * len(LARGE)
    assert PLACEHOLDER not in repr(change)
    assert serde.deserialize(serde.serialize(change)) == change
    if case == "wide unchanged":
        as_dict = ks.Debezium().deserialize(event.value)
        assert as_dict.unavailable == LARGE
        assert PLACEHOLDER not in repr(as_dict)


def test_another_placeholder_may_be_configured() -> None:
    event = envelope("u", 1, {"id": 1, "name": "?", "price": None} | dict.fromkeys(("day", "at", "seen", "more")))
    assert ks.Debezium(Item).deserialize(event).after.name == "?"
    assert ks.Debezium(Item, placeholder="?").deserialize(event).unavailable == ("name",)


def test_a_stream_has_the_changes() -> None:
    topology = ks.StreamsBuilder()
    changes = topology.stream("items", key=ks.ConnectJson(int, field="id"), value=ks.Debezium(Item))
    deletes = changes.filter(lambda key, change: change is not None and change.operation == "delete")
    deletes.map_values(lambda change: change.source.lsn, value=int).to("deleted")
    with TopologyTestDriver(topology) as driver:
        source = driver.create_input_topic("items", key=bytes, value=bytes)
        for event in recorded(ITEMS):
            if event.topic == "shop.public.items" and event.key is not None:
                source.pipe_input(event.key, event.value)
        deleted = driver.create_output_topic("deleted", key=ks.ConnectJson(int, field="id"), value=int)
        assert deleted.read_key_values() == [(2, 22233376), (1, 22233576)]


def test_changes_can_be_made_by_tests() -> None:
    topology = ks.StreamsBuilder()
    changes = topology.stream("items", key=int, value=ks.Debezium(Item))
    changes.map_values(lambda change: change.after.name, value=str).to("names")
    with TopologyTestDriver(topology) as driver:
        source = driver.create_input_topic("items", key=int, value=ks.Debezium(Item))
        source.pipe_input(1, ks.RowChange(operation="create", after=TEA))
        assert driver.create_output_topic("names", key=int, value=str).read_values() == ["tea"]


def test_errors_name_the_reason() -> None:
    with pytest.raises(SerdeError, match="'m' is no operation on a row"):
        ks.Debezium(Item).deserialize(envelope("m", 1))
    with pytest.raises(SerdeError, match="missing required field `name`"):
        ks.Debezium(Item).deserialize(envelope("c", 1, {"id": 1}))
    with pytest.raises(SerdeError, match=r"decimals='text'\): write one of 'precise', 'string', 'double'"):
        ks.Debezium(Item, decimals="text")  # type: ignore[arg-type]
    schema = {"type": "struct", "fields": []}
    with pytest.raises(SerdeError, match="no envelope of Debezium"):
        ks.Debezium(Item).deserialize(json.dumps({"schema": schema, "payload": {}}).encode())


def test_topics_and_tools_know_it_by_its_name() -> None:
    assert type_name(ks.Debezium(Item)) == "debezium"
    [event] = of_case(ITEMS, "insert")
    assert event.value is not None
    assert serde_named("debezium").deserialize(event.value).after["name"] == "jam"
