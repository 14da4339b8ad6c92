"""Every type of a field, both ways: what is written is read back, and google's own parser and JSON agree."""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.schemas import SchemaRegistry
from tests.support.schema_serdes import bound, message_class, registry_of_this_run

UTC = dt.UTC


class Status(enum.Enum):
    OPEN = "open"
    PAID = "paid"


class Priority(enum.IntEnum):
    HIGH = 5
    NONE = 0
    LOW = -1


class Card(msgspec.Struct, tag=True):
    number: str


class Transfer(msgspec.Struct, tag=True):
    iban: str
    at: dt.datetime


class Place(NamedTuple):
    lat: float
    lon: float


class Note(TypedDict):
    text: str
    by: NotRequired[str]
    tags: NotRequired[list[str]]
    reply: NotRequired[str | None]


class Person(pydantic.BaseModel):
    name: str
    age: int = 0
    nick: str | None = pydantic.Field(default=None, alias="nickName")


class Friend(pydantic.BaseModel):
    name: str


@dataclass
class Cash:
    amount: int


@dataclass
class Cheque:
    """A union of classes without tags, which holds itself."""

    name: str
    parts: list[Part] = field(default_factory=list)


@dataclass
class Part:
    of: Cash | Cheque


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


A_TIME = dt.datetime(2026, 11, 25, 12, 30, 59, 123456, UTC)
EAST = dt.timezone(dt.timedelta(hours=5))
TYPES: list[tuple[Any, list[Any]]] = [
    (bool, [True, False]),
    (int, [0, 1, -1, 2**63 - 1, -(2**63)]),
    (float, [0.0, -0.0, 1.5, -2.25e300, 5e-324, float("inf"), float("-inf"), float("nan"), 3]),
    (str, ["", "tea", "ü€😀", "a\x00b"]),
    (bytes, [b"", b"\x00\xff"]),
    (Status, list(Status)),
    (Priority, list(Priority)),
    (Literal["a", "b"], ["a", "b"]),
    (uuid.UUID, [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1)]),
    (Decimal, [Decimal(text) for text in ("0", "1.50", "-12.50", "-128", "127", "128", "1E+20", "0E-7", "9" * 60)]),
    (dt.datetime, [A_TIME, dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)]),
    (dt.datetime, [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), A_TIME.astimezone(EAST)]),
    (dt.timedelta, [dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(-3, 4), dt.timedelta(3650000)]),
    (dt.date, [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (dt.time, [dt.time(0), dt.time(23, 59, 59, 999999)]),
    (int | None, [None, 0, 5]),
    (str | None, [None, "", "x"]),
    (dt.datetime | None, [None, A_TIME]),
    (Node | None, [None, Node("a")]),
    (Node, [Node("a", [Node("b", [Node("c")])], Node("up"))]),
    (Place, [Place(64.1, -21.9)]),
    (Note, [{"text": "a"}, {"text": "", "by": "", "tags": ["x"]}]),
    (Person, [Person(name="Ada"), Person(name="Ada", age=36, nickName="countess")]),
    (list[int], [[], [0, 1, -5]]),
    (list[str], [[], ["", "a"]]),
    (list[Status], [[Status.PAID, Status.OPEN]]),
    (list[Node], [[Node("a"), Node("b")]]),
    (list[dt.datetime], [[A_TIME]]),
    (set[int], [set(), {1, 2}]),
    (frozenset[str], [frozenset({"a"})]),
    (tuple[float, ...], [(), (1.5, 2.5)]),
    (dict[str, int], [{}, {"": 0, "a": 1}]),
    (dict[int, Node], [{-1: Node("a")}]),
    (dict[bool, dt.timedelta], [{True: dt.timedelta(1), False: dt.timedelta(0)}]),
    (dict[str, Status], [{"a": Status.PAID}]),
    (Card | Transfer | None, [None, Card(""), Transfer("DE1", A_TIME)]),
    (Card | int | str, [Card("1"), 0, "", 5, "x"]),
    (Cash | Cheque | None, [None, Cash(5), Cheque("n", [Part(Cash(1)), Part(Cheque("m"))])]),
    (Friend | Person, [Friend(name="a"), Person(name="b", age=3)]),
    (Any, [None, True, 1, 1.5, "x", [1, [None]], {"a": {"b": [False]}}]),
    (dict[str, Any], [{}, {"a": 1, "b": [None]}]),
    (Annotated[int, msgspec.Meta(ge=0)], [0, 5]),
]  # fmt: skip


def holder(kind: Any) -> type:
    return msgspec.defstruct("Holder", [("before", int), ("value", kind), ("after", str)])


def same(one: Any, other: Any) -> bool:
    return one == other or repr(one) == repr(other)


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda part: str(part) if not isinstance(part, list) else "")
def test_a_value_of_a_field_is_read_back(kind: Any, values: list[Any], registry: SchemaRegistry) -> None:
    cls = holder(kind)
    serde = bound(ks.Protobuf(cls), registry)
    for value in values:
        read = serde.deserialize(serde.serialize(cls(1, value, "z")))
        assert same(read, cls(1, value, "z"))
        assert type(read.value) is type(value) or read.value == value


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=lambda part: str(part) if not isinstance(part, list) else "")
def test_what_is_read_as_dicts_is_written_from_dicts(kind: Any, values: list[Any], registry: SchemaRegistry) -> None:
    cls = holder(kind)
    serde = bound(ks.Protobuf(cls), registry)
    data = [serde.serialize(cls(1, value, "z")) for value in values]
    dicts = bound(ks.Protobuf(use_latest_version=True), registry)
    for row in data:
        read = dicts.deserialize(row)
        assert same(dicts.deserialize(dicts.serialize(read)), read)


REFUSED: list[tuple[Any, Any]] = [
    (int, 2**63),
    (int, -(2**63) - 1),
    (int, True),
    (int, 1.5),
    (int, "1"),
    (int, None),
    (float, 2**53 + 1),
    (float, "1"),
    (bool, 1.5),
    (bool, 2),
    (str, b"x"),
    (str, "\ud800"),
    (str, None),
    (bytes, "x"),
    (Status, "paid"),
    (Literal["a"], "b"),
    (Decimal, Decimal("NaN")),
    (Decimal, Decimal("-0")),
    (Decimal, Decimal("Infinity")),
    (dt.datetime, dt.datetime(2026, 1, 1)),
    (dt.timedelta, dt.timedelta.max),
    (dt.date, A_TIME),
    (dt.time, dt.time(1, tzinfo=UTC)),
    (list[int], [None]),
    (list[str], "abc"),
    (list[Node], [None]),
    (dict[str, int], {1: 1}),
    (dict[str, Any], {"a": 1j}),
    (dict[str, Any], {"a": 2**53 + 1}),
    (Card | Transfer, "x"),
    (Node, Card("1")),
    (Note, {"text": "a", "wrong": 1}),
    (Note, {"text": "a", "tags": []}),
    (Note, {"text": "a", "reply": None}),
    (Annotated[int, msgspec.Meta(ge=0)], -1),
]


@pytest.mark.parametrize(("kind", "value"), REFUSED, ids=repr)
def test_what_would_not_be_read_back_is_refused(kind: Any, value: Any, registry: SchemaRegistry) -> None:
    cls = holder(kind)
    with pytest.raises(SerdeError):
        bound(ks.Protobuf(cls), registry).serialize(cls(1, value, "z"))


@dataclass
class Leg:
    at: dt.datetime
    miles: int = 0


@dataclass
class Trip:
    name: str
    legs: list[Leg]
    by: Card | Transfer | None = None


def test_an_optional_field_may_stand_before_a_union(registry: SchemaRegistry) -> None:
    cls = msgspec.defstruct("Paid", [("note", str | None), ("by", Card | int), ("tip", int | None)])
    serde = bound(ks.Protobuf(cls), registry)
    for value in (cls(None, Card("1"), None), cls("", 0, 0)):
        assert serde.deserialize(serde.serialize(value)) == value


class Small(msgspec.Struct, tag=True):
    count: int


class Large(msgspec.Struct, tag=True):
    text: str


def test_a_field_that_is_no_oneof_is_of_the_type_that_fits(registry: SchemaRegistry) -> None:
    one = msgspec.defstruct("Box", [("first", Small | Large), ("second", Large | Small), ("third", Any)])
    text = """syntax = "proto3"; message Part { string text = 1; }
        message Box { Part first = 1; Part second = 2; optional int32 third = 3; }"""
    serde = bound(ks.Protobuf(text, message="Box", type=one), registry)
    for value in (one(Large("a"), Large("b"), None), one(Large(""), Large("b"), 3)):
        assert serde.deserialize(serde.serialize(value)) == value
    with pytest.raises(SerdeError):
        serde.serialize(one(Small(1), Large("b"), None))


def test_an_error_names_the_field_of_the_value(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(Trip), registry)
    for wrong, place in (
        (Trip("a", [Leg(A_TIME), Leg(A_TIME, 2**63)]), r"legs\.miles: Value out of range"),
        (Trip("a", [Leg(dt.datetime(2026, 1, 1))]), r"legs\.at: .* has no time zone"),
        (Trip("a", [], Transfer("x", dt.datetime(2026, 1, 1))), r"by\..*at: .* has no time zone"),
        (Trip(None, []), "name: "),  # type: ignore[arg-type]
    ):
        with pytest.raises(SerdeError, match=f"cannot be written as Trip: {place}"):
            serde.serialize(wrong)
    data = serde.serialize(Trip("a", [Leg(dt.datetime(1970, 1, 1, tzinfo=UTC))]))
    worse = data[:6] + b"\x0a\x01a" + b"\x12\x0a\x0a\x08\x10\xff\xff\xff\xff\x0f" + b"\x08\x00"
    with pytest.raises(SerdeError, match=r"is not a Trip as Trip: legs\.at: a Timestamp has 0 to"):
        serde.deserialize(worse)


NO_SCHEMA: list[tuple[Any, str]] = [
    (list[list[int]], r"Holder.value is a list .*make a class for it"),
    (list[int | None], "make a class for it"),
    (dict[str, list[int]], "make a class for it"),
    (dict[float, int], "the keys of Holder.value are float"),
    (tuple[int, str], "make a class for it"),
    (None, "always None"),
    (complex, "complex"),
]


@pytest.mark.parametrize(("kind", "sentence"), NO_SCHEMA, ids=repr)
def test_a_class_that_protobuf_cannot_hold_says_which_field(kind: Any, sentence: str, registry: SchemaRegistry) -> None:
    with pytest.raises(SerdeError, match=sentence):
        bound(ks.Protobuf(holder(kind)), registry).serialize(None)


def test_none_and_an_empty_list_are_one_in_a_message(registry: SchemaRegistry) -> None:
    @dataclass
    class Tagged:
        tags: list[str] | None = None

    serde = bound(ks.Protobuf(Tagged), registry)
    assert serde.deserialize(serde.serialize(Tagged(None))) == Tagged(None)
    assert serde.deserialize(serde.serialize(Tagged(["a"]))) == Tagged(["a"])
    with pytest.raises(SerdeError, match="would be read back as None"):
        serde.serialize(Tagged([]))


SCALARS = """
syntax = "proto3";
import "google/protobuf/wrappers.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
message Scalars {
  enum Size { SIZE_UNKNOWN = 0; SIZE_SMALL = 1; SIZE_LARGE = 2; }
  double a_double = 1; float a_float = 2; int32 an_int32 = 3; int64 an_int64 = 4; uint32 a_uint32 = 5;
  uint64 a_uint64 = 6; sint32 a_sint32 = 7; sint64 a_sint64 = 8; fixed32 a_fixed32 = 9; fixed64 a_fixed64 = 10;
  sfixed32 an_sfixed32 = 11; sfixed64 an_sfixed64 = 12; bool a_bool = 13; string a_string = 14; bytes some_bytes = 15;
  Size size = 16;
  google.protobuf.Int64Value wrapped = 17; google.protobuf.StringValue text = 18;
  repeated sint32 many = 19; map<uint64, string> names = 20; map<string, Size> sizes = 21;
  optional bool maybe = 22; google.protobuf.Timestamp at = 23; google.protobuf.Struct more = 24;
  oneof choice { string word = 25; fixed32 number = 26; }
  string from = 27; bool class = 28; string orderId = 29;
}
"""

_int32 = st.integers(-(2**31), 2**31 - 1)
_int64 = st.integers(-(2**63), 2**63 - 1)
_uint32 = st.integers(0, 2**32 - 1)
_uint64 = st.integers(0, 2**64 - 1)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_sizes = st.sampled_from(["SIZE_UNKNOWN", "SIZE_SMALL", "SIZE_LARGE"])
_json = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
SCALAR_VALUES = st.fixed_dictionaries(
    {
        "a_double": st.floats(allow_nan=False), "a_float": st.floats(-2.0**99, 2.0**99, width=32), "an_int32": _int32,
        "an_int64": _int64, "a_uint32": _uint32, "a_uint64": _uint64, "a_sint32": _int32, "a_sint64": _int64,
        "a_fixed32": _uint32, "a_fixed64": _uint64, "an_sfixed32": _int32, "an_sfixed64": _int64,
        "a_bool": st.booleans(), "a_string": _text, "some_bytes": st.binary(max_size=8), "size": _sizes,
        "wrapped": st.none() | _int64, "text": st.none() | _text, "many": st.lists(_int32, max_size=3),
        "names": st.dictionaries(_uint64, _text, max_size=3), "sizes": st.dictionaries(_text, _sizes, max_size=3),
        "maybe": st.none() | st.booleans(), "at": st.none() | st.datetimes(timezones=st.just(UTC)),
        "more": st.none() | st.dictionaries(_text, _json, max_size=3),
        "word": st.none() | _text, "from": _text, "class": st.booleans(), "orderId": _text,
    },
    optional={},
)  # fmt: skip


@given(SCALAR_VALUES)
def test_random_dicts_are_read_back_and_google_reads_the_same(value: dict[str, Any]) -> None:
    serde = SCALAR_SERDE
    data = serde.serialize(value)
    read = serde.deserialize(data)
    assert {name: read[name] for name in value} == value
    message = SCALAR_CLASS.FromString(data[6:])
    other = json_format.Parse(json_format.MessageToJson(message), SCALAR_CLASS())
    assert serde.deserialize(data[:6] + other.SerializeToString()) == read
    assert message.a_sint64 == value["a_sint64"]
    assert message.a_string == value["a_string"]


SCALAR_SERDE = bound(ks.Protobuf(SCALARS), registry_of_this_run())
SCALAR_CLASS = message_class(SCALAR_SERDE.declared_schema(), "Scalars")


@dataclass
class Mixed:
    number: int
    share: float
    text: str
    data: bytes
    on: bool
    status: Status
    price: Decimal
    at: dt.datetime
    took: dt.timedelta
    day: dt.date
    paid_by: Card | Transfer | None
    words: list[str]
    counts: dict[str, int]
    node: Node | None
    maybe: int | None = None


_nodes = st.recursive(
    st.builds(Node, _text), lambda inner: st.builds(Node, _text, st.lists(inner, max_size=2)), max_leaves=4
)
_times = st.datetimes(timezones=st.just(UTC))
MIXED = st.builds(
    Mixed, _int64, st.floats(allow_nan=False), _text, st.binary(max_size=8), st.booleans(), st.sampled_from(Status),
    st.decimals(allow_nan=False, allow_infinity=False).filter(lambda number: number != 0), _times,
    st.timedeltas(dt.timedelta(days=-3_000_000), dt.timedelta(days=3_000_000)), st.dates(),
    st.none() | st.builds(Card, _text) | st.builds(Transfer, _text, _times), st.lists(_text, max_size=3),
    st.dictionaries(_text, _int64, max_size=3), st.none() | _nodes, st.none() | _int64,
)  # fmt: skip
MIXED_SERDE = bound(ks.Protobuf(Mixed), registry_of_this_run())


@given(MIXED)
def test_random_objects_are_read_back(value: Mixed) -> None:
    assert MIXED_SERDE.deserialize(MIXED_SERDE.serialize(value)) == value


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (bool, st.booleans()),
    (int, _int64),
    (float, st.floats(allow_nan=False)),
    (str, _text),
    (bytes, st.binary(max_size=8)),
    (Status, st.sampled_from(Status)),
    (Priority, st.sampled_from(Priority)),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3).filter(bool)),
    (dt.datetime, _times),
    (dt.timedelta, st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999))),
    (dt.date, st.dates()),
    (dt.time, st.times().map(lambda time: time.replace(fold=0))),
    (uuid.UUID, st.uuids()),
    (Card | Transfer, st.builds(Card, _text) | st.builds(Transfer, _text, _times)),
]


@st.composite
def random_fields(draw: st.DrawFn, depth: int = 2) -> list[tuple[Any, st.SearchStrategy[Any]]]:
    """Types of fields, each with its values."""
    fields = []
    for _ in range(draw(st.integers(1, 5))):
        kind, values = draw(st.sampled_from(LEAVES))
        if depth and draw(st.booleans()):
            cls, makes = random_class(draw(random_fields(depth - 1)))
            kind, values = cls, makes
        forms = [(kind, values), (kind | None, st.none() | values)]
        if kind != Card | Transfer:
            forms += [
                (list[kind], st.lists(values, max_size=3)),
                (dict[str, kind], st.dictionaries(_text, values, max_size=3)),
            ]
        fields.append(draw(st.sampled_from(forms)))
    return fields


_names = itertools.count()


def random_class(fields: list[tuple[Any, st.SearchStrategy[Any]]]) -> tuple[type, st.SearchStrategy[Any]]:
    cls = msgspec.defstruct(f"Random{next(_names)}", [(f"f{at}", kind) for at, (kind, _) in enumerate(fields)])
    return cls, st.builds(cls, *(values for _, values in fields))


@given(random_fields(), st.data())
def test_random_classes_are_read_back_and_google_parses_them(
    fields: list[tuple[Any, st.SearchStrategy[Any]]], data: st.DataObject
) -> None:
    cls, values = random_class(fields)
    topic = cls.__name__
    serde = bound(ks.Protobuf(cls), registry_of_this_run(), topic)
    dicts = bound(ks.Protobuf(use_latest_version=True), registry_of_this_run(), topic)
    google = message_class(serde.declared_schema(), cls.__name__)
    for _ in range(3):
        value = data.draw(values)
        written = serde.serialize(value)
        assert serde.deserialize(written) == value
        message = google.FromString(written[6:])
        assert message.SerializeToString(deterministic=True) == written[6:]
        assert serde.deserialize(dicts.serialize(dicts.deserialize(written))) == value


def test_floats_of_32_bits_are_written_only_where_they_are_some(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf('syntax = "proto3"; message Reading { float celsius = 1; }'), registry)
    assert serde.deserialize(serde.serialize({"celsius": 21.5})) == {"celsius": 21.5}
    with pytest.raises(SerdeError, match="is no 32-bit float"):
        serde.serialize({"celsius": 0.1})
    with pytest.raises(SerdeError):
        serde.serialize({"celsius": 1e300})


def test_nanoseconds_are_cut_to_microseconds(registry: SchemaRegistry) -> None:
    cls = holder(dt.datetime)
    serde = bound(ks.Protobuf(cls), registry)
    before = serde.serialize(cls(0, dt.datetime(1970, 1, 1, tzinfo=UTC), ""))
    data = before[:6] + b"\x12\x03\x10\xcf\x0f"  # 1,999 nanoseconds
    assert serde.deserialize(data).value == dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC)


def test_values_of_an_enum_bear_its_name_in_the_schema(registry: SchemaRegistry) -> None:
    cls = msgspec.defstruct("Order", [("status", Status), ("priority", Priority)])
    data = bound(ks.Protobuf(cls), registry).serialize(cls(Status.PAID, Priority.LOW))
    assert bound(ks.Protobuf(), registry).deserialize(data) == {"status": "STATUS_PAID", "priority": "PRIORITY_LOW"}
