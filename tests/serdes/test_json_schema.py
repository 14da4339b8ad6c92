"""JSON with a schema registry: what is registered, written and checked, and confluent's own serializers beside it."""

from __future__ import annotations

import datetime as dt
import enum
import json
import pickle
import random
import uuid
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict

import jsonschema
import msgspec
import pydantic
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaReference, SchemaRegistry
from kstreams.serdes.json_schema import validator_of
from tests.support.schema_registry_server import RegistryServer
from tests.support.schema_serdes import bound, registry_of_this_run

FRAME = 5


@dataclass
class Line:
    sku: str
    count: int


@dataclass
class Order:
    id: int
    customer: str = "nobody"
    lines: list[Line] = field(default_factory=list)
    coupon: str | None = None


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=0, ge=0)


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


POINT = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Point", "type": "object", "properties": {"x": {"type": "integer", "minimum": 0}, "y": {"type": "number"}}, "required": ["x"]}'  # noqa: E501


@dataclass
class Point:
    x: int
    y: float = 0.5


def test_a_record_is_json_behind_the_id_of_its_schema(registry: SchemaRegistry) -> None:
    data = bound(ks.JsonSchema(Line), registry).serialize(Line("tea", 2))
    assert data == b"\x00\x00\x00\x00\x01" + b'{"sku":"tea","count":2}'


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Order, Order(7, "Ada", [Line("tea", 2)])),
        (Person, Person(name="Ada", age=36)),
        (list[Person], [Person(name="Ada")]),
        (Node, Node("a", [Node("b")])),
        (TypedDict("Note", {"text": str}), {"text": "x"}),
        (dict[str, list[int]], {"a": [1]}),
        (int, 5),
        (tuple[int, str], (1, "a")),
    ],
    ids=str,
)
def test_the_schema_of_a_class_admits_what_is_written(kind: Any, value: Any, registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema(kind), registry)
    data = serde.serialize(value)
    assert serde.deserialize(data) == value
    schema = json.loads(registry.version("orders-value").schema.text)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(data[FRAME:]))


def test_the_schema_of_a_class_has_its_name_and_fields_at_the_top(registry: SchemaRegistry) -> None:
    bound(ks.JsonSchema(Order, subject="record"), registry).serialize(Order(1))
    assert registry.subjects() == ["Order"]
    schema = json.loads(registry.version("Order").schema.text)
    assert (schema["title"], schema["type"], schema["required"]) == ("Order", "object", ["id"])
    assert list(schema["$defs"]) == ["Line"]


def test_a_schema_gives_dicts_or_the_class_that_type_names(tmp_path: Path, registry: SchemaRegistry) -> None:
    file = tmp_path / "point.json"
    file.write_text(POINT)
    for source in (file, str(file), POINT):
        dicts = bound(ks.JsonSchema(source), registry)
        objects = bound(ks.JsonSchema(source, type=Point), registry)
        data = dicts.serialize({"x": 1})
        assert dicts.deserialize(data) == {"x": 1}
        assert objects.deserialize(data) == Point(1, 0.5)
        assert dicts.deserialize(objects.serialize(Point(2))) == {"x": 2, "y": 0.5}
    with pytest.raises(SerdeError, match="cannot be read: No such file"):
        ks.JsonSchema("none.json")


def test_records_are_checked_against_a_schema_both_ways(registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema(POINT), registry)
    frame = serde.serialize({"x": 1})[:FRAME]
    for wrong, where in (({"y": 1}, "'x' is a required property"), ({"x": -1}, r"-1 is less than .* at \$\.x")):
        with pytest.raises(SerdeError, match=where):
            serde.serialize(wrong)
        with pytest.raises(SerdeError, match=where):
            serde.deserialize(frame + json.dumps(wrong).encode())
        unchecked = bound(ks.JsonSchema(POINT, validate=False), registry)
        assert unchecked.deserialize(unchecked.serialize(wrong)) == wrong


def test_a_class_can_be_checked_against_its_schema_too(registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema(Person, validate=True), registry)
    assert serde.deserialize(serde.serialize(Person(name="Ada"))) == Person(name="Ada")
    with pytest.raises(SerdeError, match=r"greater than or equal|less than the minimum"):
        serde.deserialize(serde.serialize(Person(name="Ada"))[:FRAME] + b'{"name":"Ada","age":-1}')


def test_without_a_schema_the_writer_s_may_check(registry: SchemaRegistry) -> None:
    frame = bound(ks.JsonSchema(POINT), registry).serialize({"x": 1})[:FRAME]
    assert bound(ks.JsonSchema(), registry).deserialize(frame + b'{"x":-1}') == {"x": -1}
    with pytest.raises(SerdeError, match="less than the minimum"):
        bound(ks.JsonSchema(validate=True), registry).deserialize(frame + b'{"x":-1}')


def test_a_schema_may_refer_to_other_subjects(registry: SchemaRegistry) -> None:
    registry.register("point", Schema(POINT, "JSON"))
    line = '{"title": "Line", "type": "array", "items": {"$ref": "point.json"}}'
    serde = bound(ks.JsonSchema(line, references=[SchemaReference("point.json", "point", 1)]), registry)
    assert serde.deserialize(serde.serialize([{"x": 1}])) == [{"x": 1}]
    with pytest.raises(SerdeError, match="less than the minimum"):
        serde.serialize([{"x": -1}])


def test_a_reference_that_leads_nowhere_is_an_error_of_the_record(registry: SchemaRegistry) -> None:
    check = validator_of(Schema('{"type": "array", "items": {"$ref": "point.json"}}', "JSON"), registry)
    with pytest.raises(SerdeError, match=r"point\.json"):
        check(b'[{"x": 1}]')


def test_numbers_that_a_check_cannot_take_are_an_error_of_the_record(registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema('{"title": "Price", "type": "number", "multipleOf": 0.01}'), registry)
    frame = serde.serialize(0.25)[:FRAME]
    with pytest.raises(SerdeError):
        serde.deserialize(frame + b"1e400")
    with pytest.raises(SerdeError):
        serde.deserialize(frame + b"1" * 400)


def test_a_schema_that_is_none_says_so(registry: SchemaRegistry) -> None:
    with pytest.raises(SerdeError, match="the schema is no JSON"):
        bound(ks.JsonSchema("{"), registry).serialize({})
    with pytest.raises(Exception, match=r"(?i)no JSON Schema|is not valid"):
        bound(ks.JsonSchema('{"type": "integr"}'), registry).serialize(1)


def test_fields_that_are_missing_take_defaults_and_unknown_ones_are_dropped(registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema(Order), registry)
    frame = serde.serialize(Order(1))[:FRAME]
    assert serde.deserialize(frame + b'{"id":7,"priority":9}') == Order(7)
    with pytest.raises(SerdeError, match="missing required field `id`"):
        serde.deserialize(frame + b"{}")


@pytest.mark.parametrize("wrong", [Order("7"), Order(7, None), Order(7, lines=[1]), Line("a", 1)], ids=str)  # type: ignore[arg-type, list-item]
def test_what_would_not_be_read_back_is_refused(wrong: Any, registry: SchemaRegistry) -> None:
    with pytest.raises(SerdeError):
        bound(ks.JsonSchema(Order), registry).serialize(wrong)


def test_nothing_declared_writes_with_the_latest_version(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(POINT, "JSON"))
    assert bound(ks.JsonSchema(use_latest_version=True), registry).serialize({"x": 1})[FRAME:] == b'{"x":1}'
    with pytest.raises(SerdeError, match="no schema to write topic orders with"):
        bound(ks.JsonSchema(), registry).serialize({"x": 1})


def test_the_guid_may_stand_in_place_of_the_id(registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema(Line, schema_id="header"), registry)
    data = serde.serialize(Line("tea", 2))
    assert data[:17] == b"\x01" + uuid.UUID(registry.version("orders-value").guid).bytes
    assert serde.deserialize(data) == Line("tea", 2)


def test_many_records_are_read_in_their_order(registry: SchemaRegistry) -> None:
    serde = bound(ks.JsonSchema(Line), registry)
    lines = [Line("a", 1), None, Line("b", 2)]
    assert serde.decode_rows(serde.encode_rows(lines)) == lines


def test_a_serde_travels(registry: SchemaRegistry) -> None:
    for serde in (ks.JsonSchema(Point), ks.JsonSchema(POINT, type=Point)):
        data = bound(serde, registry).serialize(Point(1))
        arrived = pickle.loads(pickle.dumps(serde))
        assert arrived == serde
        assert bound(arrived, registry).deserialize(data) == Point(1)
    assert ks.JsonSchema(Point) != ks.JsonSchema(Line)


class Kind(enum.Enum):
    A = "a"
    B = "b"


@dataclass
class Mixed:
    number: int
    share: float
    text: str
    data: bytes
    kind: Kind
    price: Decimal
    at: dt.datetime
    day: dt.date
    id: uuid.UUID
    words: list[str]
    counts: dict[str, int]
    maybe: int | None
    positive: Annotated[int, msgspec.Meta(ge=0)]


_int64 = st.integers(-(2**63), 2**63 - 1)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MIXED = st.builds(
    Mixed, _int64, st.floats(allow_nan=False), _text, st.binary(max_size=8), st.sampled_from(Kind),
    st.decimals(allow_nan=False, allow_infinity=False), st.datetimes(timezones=st.just(dt.UTC)), st.dates(), st.uuids(),
    st.lists(_text, max_size=3), st.dictionaries(_text, _int64, max_size=3), st.none() | _int64,
    st.integers(min_value=0),
)  # fmt: skip


@given(MIXED)
def test_random_objects_are_read_back(value: Mixed) -> None:
    serde = bound(ks.JsonSchema(Mixed), registry_of_this_run(), "json-mixed")
    assert serde.deserialize(serde.serialize(value)) == value


def _fuzz(count: int) -> None:
    serde = bound(ks.JsonSchema(Order), registry_of_this_run(), "json-fuzz")
    checked = bound(ks.JsonSchema(Order, validate=True), registry_of_this_run(), "json-fuzz")
    whole = serde.serialize(Order(7, "Ada ü", [Line("tea", 2), Line("", -1)], "c"))
    chance, refused = random.Random(36), 0
    for turn in range(count):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 5))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        del data[chance.choice((len(data), chance.randrange(len(data)))) :]
        try:
            read = (checked if turn % 20 == 0 else serde).deserialize(bytes(data))
        except SerdeError:
            refused += 1
        else:
            assert read == msgspec.json.decode(bytes(data[FRAME:]), type=Order)
    assert refused > count // 2


def test_damaged_records_are_an_error_or_what_their_json_says() -> None:
    _fuzz(3_000)


@pytest.mark.slow
def test_100_000_damaged_records_are_an_error_or_what_their_json_says() -> None:
    _fuzz(100_000)


def test_confluent_reads_what_was_written_and_the_other_way_round(server: RegistryServer) -> None:
    client = SchemaRegistryClient({"url": server.url})
    registry = registry_of(Config.of({"schema.registry.url": server.url}))
    serde = bound(ks.JsonSchema(Order), registry)
    context = SerializationContext("orders", MessageField.VALUE)
    text = ks.JsonSchema(Order).declared_schema().text
    deserialize = JSONDeserializer(text, schema_registry_client=client)
    serialize = JSONSerializer(text, client, lambda order, context: asdict(order))
    for number in range(50):
        order = Order(number, f"c{number}", [Line("tea", at) for at in range(number % 3)])
        assert deserialize(serde.serialize(order), context) == asdict(order)
        data = serialize(order, context)
        assert data[:FRAME] == serde.serialize(order)[:FRAME]
        assert serde.deserialize(data) == order
        assert bound(ks.JsonSchema(), registry).deserialize(data) == asdict(order)
    registry.close()
