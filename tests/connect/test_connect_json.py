"""JSON as Kafka Connect's JsonConverter writes it: both forms are read, either is written."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import pickle
import uuid
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.serdes import serde_named, type_name
from kstreams.testing import TopologyTestDriver
from tests.support.examples import examples

Money = Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]
Int32 = Annotated[int, msgspec.Meta(extra={"type": "int32"})]
Micros = Annotated[dt.datetime, msgspec.Meta(tz=False, extra={"unit": "us"})]
DATA = "org.apache.kafka.connect.data"


@dataclass(frozen=True)
class Item:
    sku: str
    count: Int32 = 1


@dataclass(frozen=True)
class Order:
    id: int
    price: Money
    day: dt.date
    clock: dt.time
    at: dt.datetime
    items: list[Item] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    raw: bytes = b""
    seen: Micros | None = None
    note: str | None = None
    ratio: float = 1.0
    is_paid: bool = False


ORDER = Order(
    id=1,
    price=Decimal("1.50"),
    day=dt.date(2026, 1, 2),
    clock=dt.time(3, 4, 5, 678_000),
    at=dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC),
    items=[Item("a"), Item("b", 2)],
    tags={"x": 1},
    names={7: "seven"},
    raw=b"\x01\xff",
    seen=dt.datetime(2026, 1, 2, 3, 4, 5, 678_901),
)
PAYLOAD = {
    "id": 1,
    "price": "AJY=",
    "day": 20455,
    "clock": 11045678,
    "at": 1767323045678,
    "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}],
    "tags": {"x": 1},
    "names": [[7, "seven"]],
    "raw": "Af8=",
    "seen": 1767323045678901,
    "note": None,
    "ratio": 1.0,
    "is_paid": False,
}
FORMS = [ks.ConnectJson(Order), ks.ConnectJson(Order, schemas=False), ks.ConnectJson(Order, decimals="numeric")]


def test_the_payload_is_that_of_json_converter() -> None:
    assert json.loads(ks.ConnectJson(Order, schemas=False).serialize(ORDER)) == PAYLOAD
    assert json.loads(ks.ConnectJson(Order).serialize(ORDER))["payload"] == PAYLOAD


def test_the_schema_names_every_type_of_connect() -> None:
    schema = json.loads(ks.ConnectJson(Order).serialize(ORDER))["schema"]
    types = {part["field"]: (part["type"], part.get("name", ""), part["optional"]) for part in schema["fields"]}
    assert (schema["type"], schema["name"]) == ("struct", "Order")
    assert types == {
        "id": ("int64", "", False),
        "price": ("bytes", f"{DATA}.Decimal", False),
        "day": ("int32", f"{DATA}.Date", False),
        "clock": ("int32", f"{DATA}.Time", False),
        "at": ("int64", f"{DATA}.Timestamp", False),
        "items": ("array", "", False),
        "tags": ("map", "", False),
        "names": ("map", "", False),
        "raw": ("bytes", "", False),
        "seen": ("int64", "io.debezium.time.MicroTimestamp", True),
        "note": ("string", "", True),
        "ratio": ("double", "", False),
        "is_paid": ("boolean", "", False),
    }
    assert schema["fields"][1]["parameters"] == {"scale": "2"}
    assert schema["fields"][5]["items"]["fields"][1]["type"] == "int32"


@pytest.mark.parametrize("serde", FORMS, ids=["schemas", "plain", "numeric"])
def test_what_is_written_is_read_back(serde: ks.ConnectJson[Order]) -> None:
    assert serde.deserialize(serde.serialize(ORDER)) == ORDER
    assert pickle.loads(pickle.dumps(serde)) == serde


@pytest.mark.parametrize("reader", FORMS, ids=["schemas", "plain", "numeric"])
@pytest.mark.parametrize("writer", FORMS, ids=["schemas", "plain", "numeric"])
def test_each_form_is_read_whichever_is_written(writer: ks.ConnectJson[Order], reader: ks.ConnectJson[Order]) -> None:
    assert reader.deserialize(writer.serialize(ORDER)) == ORDER


def test_a_schema_alone_makes_plain_python_values() -> None:
    values = ks.ConnectJson().deserialize(ks.ConnectJson(Order).serialize(ORDER))
    assert values["price"] == Decimal("1.50")
    assert values["at"] == ORDER.at
    assert values["seen"] == ORDER.seen
    assert values["raw"] == b"\x01\xff"
    assert values["names"] == {7: "seven"}
    assert values["items"][1] == {"sku": "b", "count": 2}


def test_what_the_file_source_of_connect_writes_is_read() -> None:
    lines = ks.ConnectJson(str)
    assert lines.deserialize(b'{"schema":{"type":"string","optional":false},"payload":"one"}') == "one"
    assert lines.deserialize(b'"one"') == "one"
    assert lines.serialize("one") == b'{"schema":{"type":"string","optional":false},"payload":"one"}'
    assert ks.ConnectJson(str, schemas=False).serialize("one") == b'"one"'


def test_a_value_without_a_type_has_no_schema() -> None:
    assert ks.ConnectJson().serialize({"a": 1}) == b'{"schema":null,"payload":{"a":1}}'
    assert ks.ConnectJson().deserialize(b'{"schema":null,"payload":{"a":1}}') == {"a": 1}


def test_an_object_with_such_fields_of_its_own_is_a_payload() -> None:
    value = {"schema": "public", "payload": 1, "more": 2}
    assert ks.ConnectJson().deserialize(json.dumps(value).encode()) == value


def test_a_schema_may_be_given_for_plain_values() -> None:
    decimal = {"type": "bytes", "name": f"{DATA}.Decimal", "parameters": {"scale": "3"}, "optional": True}
    fields = [{"type": "int8", "field": "a"}, {**decimal, "field": "d"}]
    serde = ks.ConnectJson(schema={"type": "struct", "fields": fields})
    assert serde.deserialize(serde.serialize({"a": 1, "d": Decimal("1.25")})) == {"a": 1, "d": Decimal("1.250")}
    with pytest.raises(SerdeError, match="field a: 300 is no int8"):
        serde.serialize({"a": 300, "d": None})
    with pytest.raises(SerdeError, match="'b' is no field of the schema"):
        serde.serialize({"a": 1, "b": 2})


def test_the_one_field_of_a_key_may_be_the_value() -> None:
    key = ks.ConnectJson(int, field="id", schemas=False)
    assert key.deserialize(b'{"id":7}') == 7
    assert key.serialize(7) == b'{"id":7}'
    with_schema = ks.ConnectJson(int, field="id")
    assert with_schema.deserialize(with_schema.serialize(7)) == key.deserialize(with_schema.serialize(7)) == 7


def test_infinities_and_nan_are_text_as_jackson_writes_them() -> None:
    for serde in FORMS:
        for number in (math.inf, -math.inf):
            assert serde.deserialize(serde.serialize(replace(ORDER, ratio=number))).ratio == number
        assert math.isnan(serde.deserialize(serde.serialize(replace(ORDER, ratio=math.nan))).ratio)
    assert json.loads(FORMS[1].serialize(replace(ORDER, ratio=math.nan)))["ratio"] == "NaN"


def test_null_with_a_schema_is_null() -> None:
    assert (
        ks.ConnectJson(str | None).deserialize(b'{"schema":{"type":"string","optional":true},"payload":null}') is None
    )


class Color(enum.Enum):
    RED = "red"


class Place(NamedTuple):
    street: str
    since: dt.date


class Options(TypedDict):
    until: dt.date


class Renamed(msgspec.Struct, rename="camel"):
    first_day: dt.date
    wait_for: dt.timedelta
    tag_id: uuid.UUID
    color: Color = Color.RED
    place: Place | None = None
    options: Options | None = None


def test_structs_named_tuples_typed_dicts_enums_and_uuids_are_fields() -> None:
    value = Renamed(
        dt.date(2026, 1, 2),
        dt.timedelta(hours=2),
        uuid.UUID(int=7),
        place=Place("A", dt.date(2025, 1, 1)),
        options={"until": dt.date(2027, 1, 1)},
    )
    for serde in (ks.ConnectJson(Renamed), ks.ConnectJson(Renamed, schemas=False)):
        assert serde.deserialize(serde.serialize(value)) == value
    payload = json.loads(ks.ConnectJson(Renamed, schemas=False).serialize(value))
    assert payload["firstDay"] == 20455
    assert payload["waitFor"] == 7_200_000_000


def test_a_field_that_an_older_record_lacks_has_its_default() -> None:
    old = b'{"id":1,"price":"AJY=","day":20455,"clock":0,"at":0}'
    assert ks.ConnectJson(Order).deserialize(old).ratio == 1.0
    with pytest.raises(SerdeError, match="missing required field `price`"):
        ks.ConnectJson(Order).deserialize(b'{"id":1}')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": Decimal("1.505")}, "field price: 1.505 has more than 2 digits after the point"),
        ({"at": dt.datetime(2026, 1, 1)}, "field at: .* is no datetime with a time zone"),
        ({"clock": dt.time(1, 2, 3, 4)}, "field clock: .* has microseconds, which milliseconds do not hold"),
        ({"items": [Item("a", 2**40)]}, "field items: field count: 1099511627776 is no int32"),
        ({"id": "one"}, "Expected `int`, got `str`"),
    ],
)
def test_what_would_not_be_read_back_is_not_written(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        ks.ConnectJson(Order).serialize(replace(ORDER, **change))


@dataclass
class Unscaled:
    price: Decimal


@dataclass
class Either:
    part: int | dt.date


@dataclass
class Anything:
    more: Any


def test_types_without_a_form_are_refused_with_the_cure() -> None:
    with pytest.raises(SerdeError, match=r'field price: a decimal has no schema .*extra=\{"scale": 2\}'):
        ks.ConnectJson(Unscaled)
    with pytest.raises(SerdeError, match=r"field price: 'AJY=' is a decimal in Base64 without its scale: .* schemas"):
        ks.ConnectJson(Unscaled, schemas=False).deserialize(b'{"price":"AJY="}')
    with pytest.raises(SerdeError, match=r"field part: .* a field has one type"):
        ks.ConnectJson(Either, schemas=False)
    with pytest.raises(SerdeError, match=r"field more: .* write without schemas \(schemas=False\)"):
        ks.ConnectJson(Anything)
    with pytest.raises(SerdeError, match="decimals='text' is no form of decimals"):
        ks.ConnectJson(Order, decimals="text")
    schema = {"type": "struct", "fields": [{"type": "int64", "name": f"{DATA}.Timestamp", "field": "day"}]}
    data = json.dumps({"schema": schema, "payload": {"day": 1}}).encode()
    with pytest.raises(SerdeError, match=r"field day: the schema says int64 .*Timestamp, which is no"):
        ks.ConnectJson(Order).deserialize(data)


dates = st.dates()
naive = st.datetimes()
orders = st.builds(
    Order,
    id=st.integers(-(2**63), 2**63 - 1),
    price=st.decimals(allow_nan=False, allow_infinity=False, places=2),
    day=dates,
    clock=st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    at=naive.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=dt.UTC)),
    items=st.lists(st.builds(Item, sku=st.text(), count=st.integers(-(2**31), 2**31 - 1)), max_size=3),
    tags=st.dictionaries(st.text(), st.integers(-5, 5), max_size=3),
    names=st.dictionaries(st.integers(-5, 5), st.text(), max_size=3),
    raw=st.binary(max_size=10),
    seen=st.none() | naive,
    note=st.none() | st.text(),
    ratio=st.floats(allow_nan=False),
    is_paid=st.booleans(),
)


@given(orders)
@settings(max_examples=examples(150), deadline=None)
def test_every_order_is_read_back(order: Order) -> None:
    for serde in FORMS:
        assert serde.deserialize(serde.serialize(order)) == order


@dataclass
class Tea:
    id: int
    name: str
    price: float | None = None


def test_fields_are_read_as_columns_with_schemas_and_without() -> None:
    rows = [Tea(1, "green", 1.5), None, Tea(2, "black")]
    for serde in (ks.ConnectJson(Tea), ks.ConnectJson(Tea, schemas=False)):
        columns = serde.field_columns(["id", "price"]).decode(serde.encode_rows(rows))
        assert columns["id"].to_pylist() == [1, None, 2]
        assert columns["price"].to_pylist() == [1.5, None, None]
        assert serde.decode_rows(serde.encode_rows(rows)) == rows
    mixed = pa.concat_arrays([ks.ConnectJson(Tea, schemas=s).encode_rows(rows) for s in (True, False)])
    assert ks.ConnectJson(Tea).field_columns(["id"]).decode(mixed)["id"].to_pylist() == [1, None, 2] * 2


def test_an_application_reads_and_writes_it_with_expressions() -> None:
    topology = ks.StreamsBuilder()
    teas = topology.stream("teas", key=str, value=ks.ConnectJson(Tea))
    teas.filter(ks.col("price") > 1).to("dear", value=ks.ConnectJson(Tea, schemas=False))
    with TopologyTestDriver(topology) as driver:
        source = driver.create_input_topic("teas", key=str, value=ks.ConnectJson(Tea))
        source.pipe_input("a", Tea(1, "green", 1.5))
        source.pipe_input("b", Tea(2, "black", 0.5))
        assert driver.create_output_topic("dear", key=str, value=bytes).read_values() == [
            b'{"id":1,"name":"green","price":1.5}'
        ]


def test_topics_and_tools_know_it_by_its_name(tmp_path: Path) -> None:
    assert type_name(ks.ConnectJson(Tea)) == "connect-json"
    data = ks.ConnectJson(Tea).serialize(Tea(1, "green", 1.5))
    assert serde_named("connect-json").deserialize(data) == {"id": 1, "name": "green", "price": 1.5}


def test_damaged_bytes_are_an_error_of_their_record() -> None:
    for data in (
        b"",
        b"not JSON",
        b'{"schema":{"type":"string"},"payload":',
        b"\xff\xfe",
        b'{"schema":{},"payload":1}',
    ):
        with pytest.raises(SerdeError):
            ks.ConnectJson(Tea).deserialize(data)
