"""Classes of Python as records of Avro: every type that may stand in one, both ways, and what is refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import pickle
import uuid
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import SchemaRegistry
from kstreams.serdes import AvroDuration
from kstreams.serdes.base import SerdeUse
from tests.support.avro_schemas import read_by_fastavro


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[SchemaRegistry]:
    with closing(registry_of(Config.of(schema_registry_url="local:", log_dir=tmp_path / "log"))) as opened:
        opened.set_compatibility("NONE")
        yield opened


def of_topic(serde: ks.Avro, registry: SchemaRegistry, topic: str = "orders", **settings: Any) -> ks.Avro:
    return serde.of_topic(SerdeUse(topic, False, Config.of(settings), lambda: registry))


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass
class Card:
    number: str


@dataclasses.dataclass
class Transfer:
    iban: str
    bank: str | None = None


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Row(TypedDict):
    id: int
    name: str


class Place(pydantic.BaseModel):  # type: ignore[misc]
    street: str
    number: int = 1


Money = Annotated[Decimal, msgspec.Meta(extra={"precision": 10, "scale": 2})]
Naive = Annotated[dt.datetime, msgspec.Meta(tz=False)]
Positive = Annotated[int, msgspec.Meta(gt=0)]
NOON = dt.datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=dt.UTC)

MATRIX: dict[str, tuple[Any, Any]] = {
    "int": (int, 7),
    "int at its ends": (list[int], [2**63 - 1, -(2**63), 0, -1, 63, 64, -64, -65]),
    "float": (float, 1.5),
    "infinities": (list[float], [float("inf"), float("-inf"), float("nan"), -0.0]),
    "str": (str, "héllo €"),
    "empty str": (str, ""),
    "long str": (str, "x" * 10_000),
    "bool": (bool, True),
    "bytes": (bytes, b"\x00\xff"),
    "none": (None, None),
    "date": (dt.date, dt.date(1969, 12, 31)),
    "first date": (dt.date, dt.date.min),
    "time": (dt.time, dt.time(23, 59, 59, 999_999)),
    "datetime": (dt.datetime, NOON),
    "old datetime": (dt.datetime, dt.datetime(1890, 1, 1, tzinfo=dt.UTC)),
    "last datetime": (dt.datetime, dt.datetime.max.replace(tzinfo=dt.UTC)),
    "naive datetime": (Naive, NOON.replace(tzinfo=None)),
    "timedelta": (dt.timedelta, dt.timedelta(days=3, milliseconds=5)),
    "duration": (AvroDuration, AvroDuration(14, 3, 7)),
    "uuid": (uuid.UUID, uuid.UUID(int=7)),
    "decimal": (Decimal, Decimal("12.500000000")),
    "money": (Money, Decimal("-12.50")),
    "no money": (Money, Decimal("0.00")),
    "enum by value": (Color, Color.RED),
    "enum by name": (Level, Level.HIGH),
    "int enum": (Number, Number.ONE),
    "literal": (Literal["a", "b"], "b"),
    "literal numbers": (Literal[1, 2], 2),
    "limited": (Positive, 3),
    "optional": (int | None, 7),
    "optional none": (int | None, None),
    "optional enum": (Color | None, Color.GREEN),
    "optional money": (Money | None, Decimal("1.00")),
    "optional datetime": (dt.datetime | None, NOON),
    "union of leaves": (int | str, "x"),
    "union of leaves, other": (int | str, 7),
    "union with bytes": (str | bytes | None, b"x"),
    "union of float and int": (int | float, 1.5),
    "union of float and int, other": (int | float, 2),
    "list": (list[str], ["a", "b"]),
    "empty list": (list[str], []),
    "long list": (list[int], list(range(1000))),
    "list of lists": (list[list[int]], [[1], [], [2, 3]]),
    "list of optionals": (list[int | None], [1, None]),
    "list of unions": (list[int | str], [1, "a"]),
    "tuple": (tuple[int, ...], (1, 2)),
    "set": (set[str], {"a", "b"}),
    "frozenset": (frozenset[int], frozenset({1, 2})),
    "dict": (dict[str, int], {"a": 1, "ü": 2}),
    "empty dict": (dict[str, int], {}),
    "dict of lists": (dict[str, list[int]], {"a": [1, 2]}),
    "dict of datetimes": (dict[str, dt.datetime], {"a": NOON}),
    "class": (Card, Card("42")),
    "optional class": (Card | None, Card("42")),
    "no class": (Card | None, None),
    "union of classes": (Card | Transfer, Transfer("DE1")),
    "union of classes, other": (Card | Transfer | None, Card("42")),
    "list of classes": (list[Card], [Card("1"), Card("2")]),
    "list of unions of classes": (list[Card | Transfer], [Card("1"), Transfer("2", "b")]),
    "dict of classes": (dict[str, Card], {"a": Card("1")}),
    "recursive": (Node, Node("a", [Node("b", [Node("c")]), Node("d")])),
    "named tuple": (Pair, Pair(1, "x")),
    "typed dict": (Row, Row(id=1, name="a")),
    "model": (Place, Place(street="High Street", number=5)),
    "models": (list[Place], [Place(street="a"), Place(street="b", number=2)]),
}


@pytest.mark.parametrize("name", MATRIX)
@pytest.mark.parametrize("base", ["struct", "dataclass"])
def test_every_type_of_a_field(name: str, base: str, registry: SchemaRegistry) -> None:
    kind, value = MATRIX[name]
    made: Any = (
        msgspec.defstruct("Record", [("field", kind)])
        if base == "struct"
        else dataclasses.make_dataclass("Record", [("field", kind)])
    )
    serde = of_topic(ks.Avro(made), registry)
    written = made(value)
    data = serde.serialize(written)
    read = serde.deserialize(data)
    assert type(read) is made
    assert type(read.field) is type(value)
    assert repr(read.field) == repr(value) or read.field == value
    assert serde.decode_rows(serde.encode_rows([written, None, written]))[1] is None
    read_by_fastavro(data[5:], json.loads(registry.version("orders-value").schema.text))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 2**63),
        (int, "7"),
        (int, None),
        (int, 1.5),
        (float, "1.5"),
        (float, 2**53 + 1),
        (str, b"x"),
        (str, "\ud800"),
        (bytes, "x"),
        (bool, 1),
        (dt.date, NOON),
        (dt.datetime, NOON.replace(tzinfo=None)),
        (Naive, NOON),
        (dt.time, dt.time(1, tzinfo=dt.UTC)),
        (dt.timedelta, dt.timedelta(microseconds=1)),
        (dt.timedelta, dt.timedelta(days=-1)),
        (uuid.UUID, "7"),
        (Money, Decimal("1.005")),
        (Money, Decimal(10) ** 10),
        (Money, Decimal("NaN")),
        (Money, 1),
        (Color, "blue"),
        (Literal["a", "b"], "c"),
        (Positive, -1),
        (int | None, "x"),
        (int | str, 1.5),
        (list[int], (1, 2)),
        (list[int], ["a"]),
        (dict[str, int], {1: 1}),
        (dict[str, int], {"a": "b"}),
        (Card, {"number": "42"}),
        (Card | Transfer, Node("a")),
        (Row, {"id": 1}),
        (Row, {"id": 1, "name": "a", "more": 2}),
    ],
)
def test_a_value_that_would_not_be_read_back_is_refused(kind: Any, value: Any, registry: SchemaRegistry) -> None:
    made: Any = msgspec.defstruct("Record", [("field", kind)])
    with pytest.raises(SerdeError, match="field"):
        of_topic(ks.Avro(made), registry).serialize(made(value))


@pytest.mark.parametrize("kind", [Any, complex, object, tuple[int, str], dict[int, int], "Unknown"])
def test_a_type_without_counterpart_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(SerdeError, match=r"field|Unknown"):
        ks.Avro(msgspec.defstruct("Record", [("field", kind)]))


def test_keys_of_one_class_have_one_form(registry: SchemaRegistry) -> None:
    serde = of_topic(ks.Avro(Card), registry)
    assert serde.serialize(Card("42")) == b"\x00\x00\x00\x00\x01\x0442"


def test_a_serde_travels(registry: SchemaRegistry, tmp_path: Path) -> None:
    config = Config.of(schema_registry_url="local:", log_dir=tmp_path / "log")
    from kstreams.log.schema_registries import ApplicationRegistry

    opened = ApplicationRegistry(config)
    serde = ks.Avro(Card).of_topic(SerdeUse("orders", False, config, opened))
    data = serde.serialize(Card("42"))
    there = pickle.loads(pickle.dumps(serde))
    assert there == serde
    assert there.deserialize(data) == Card("42")
    opened.close()


@dataclasses.dataclass
class OrderV1:
    id: int
    customer: str


@dataclasses.dataclass
class OrderV2:
    id: float
    tags: list[str] = dataclasses.field(default_factory=list)
    color: Color = Color.RED
    customer: str | None = None


def test_the_class_decides_about_fields_that_a_record_lacks(registry: SchemaRegistry) -> None:
    old = of_topic(ks.Avro(OrderV1), registry).serialize(OrderV1(7, "ann"))
    assert of_topic(ks.Avro(OrderV2, name="shop.OrderV1"), registry).deserialize(old) == OrderV2(
        7.0, [], Color.RED, "ann"
    )


def test_a_record_of_another_name_is_no_record_of_the_class(registry: SchemaRegistry) -> None:
    old = of_topic(ks.Avro(OrderV1), registry).serialize(OrderV1(7, "ann"))
    with pytest.raises(SerdeError, match=r"ks\.Avro\(OrderV2, name='OrderV1'\)"):
        of_topic(ks.Avro(OrderV2), registry).deserialize(old)


def test_two_classes_of_one_name_are_refused() -> None:
    one, other = msgspec.defstruct("Card", [("a", int)]), msgspec.defstruct("Card", [("b", int)])
    with pytest.raises(SerdeError, match="two classes are called Card"):
        ks.Avro(msgspec.defstruct("Record", [("one", one), ("other", other)]))


def test_a_record_that_cannot_be_read_names_both_schemas_and_the_field(registry: SchemaRegistry) -> None:
    first = dataclasses.make_dataclass("Order", [("id", str)])
    data = of_topic(ks.Avro(first), registry).serialize(first("x"))
    second = dataclasses.make_dataclass("Order", [("id", int)])
    serde = of_topic(ks.Avro(second), registry)
    serde.serialize(second(1))
    with pytest.raises(SerdeError, match=r"schema id 1 cannot be read .* field id: string .* long .*schema id 2"):
        serde.deserialize(data)


def test_dicts_of_a_schema(registry: SchemaRegistry, tmp_path: Path) -> None:
    card = {"type": "record", "name": "Card", "fields": [{"name": "number", "type": "string"}]}
    fields = [
        {"name": "by", "type": ["null", card, {"type": "record", "name": "Cash", "fields": []}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": "string", "default": "none"},
    ]
    text = json.dumps({"type": "record", "name": "Payment", "namespace": "shop", "fields": fields})
    file = tmp_path / "payment.avsc"
    file.write_text(text)
    for schema in (text, str(file), file):
        serde = of_topic(ks.Avro(schema), registry)
        at = NOON.replace(microsecond=5000)
        data = serde.serialize({"by": ("shop.Card", {"number": "42"}), "at": at})
        assert serde.deserialize(data) == {"by": ("shop.Card", {"number": "42"}), "at": at, "note": "none"}
        assert of_topic(ks.Avro(), registry).deserialize(data)["by"] == ("shop.Card", {"number": "42"})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(SerdeError, match=r"nowhere\.avsc"):
        ks.Avro("nowhere.avsc")


def test_a_text_that_is_no_schema() -> None:
    with pytest.raises(SerdeError, match="no schema of Avro"):
        ks.Avro('{"type": "recrod"}')


def test_writing_without_a_schema_says_what_to_do(registry: SchemaRegistry) -> None:
    with pytest.raises(SerdeError, match=r"ks\.Avro\(Order\)"):
        of_topic(ks.Avro(), registry).serialize({"id": 1})


def test_the_newest_version_writes_where_that_is_wanted(registry: SchemaRegistry) -> None:
    of_topic(ks.Avro(OrderV1), registry).serialize(OrderV1(1, "a"))
    serde = of_topic(ks.Avro(use_latest_version=True), registry)
    data = serde.serialize({"id": 7, "customer": "ann"})
    assert of_topic(ks.Avro(OrderV1), registry).deserialize(data) == OrderV1(7, "ann")


def test_a_newest_version_that_would_lose_something_is_refused(registry: SchemaRegistry) -> None:
    of_topic(
        ks.Avro('{"type": "record", "name": "OrderV1", "fields": [{"name": "id", "type": "string"}]}'), registry
    ).serialize({"id": "x"})
    with pytest.raises(SerdeError, match=r"latest\.compatibility\.strict"):
        of_topic(ks.Avro(OrderV1, use_latest_version=True), registry).serialize(OrderV1(7, "ann"))


def test_a_newer_version_is_taken_when_the_time_of_the_last_is_over(registry: SchemaRegistry) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
    later = text.replace('"type": "long"}', '"type": "long"}, {"name": "note", "type": "string", "default": "-"}')
    for topic, ttl, number in (("kept", -1, 1), ("followed", 0, 2)):
        of_topic(ks.Avro(text), registry, topic).serialize({"id": 1})
        serde = of_topic(ks.Avro(use_latest_version=True), registry, topic, **{"latest.cache.ttl.sec": ttl})
        assert serde.serialize({"id": 1})[4] == 1
        of_topic(ks.Avro(later), registry, topic).serialize({"id": 1})
        assert serde.serialize({"id": 1})[4] == number
