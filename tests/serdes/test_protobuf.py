"""Protobuf records: what is declared, what is registered, and what lies in the bytes."""

from __future__ import annotations

import base64
import datetime as dt
import pickle
import subprocess
import sys
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

import kstreams as ks
from kstreams.errors import SchemaNotFoundError, SerdeError
from kstreams.schemas import Schema, SchemaReference, SchemaRegistry
from tests.support.schema_serdes import bound, generated_module

ORDER = """
syntax = "proto3";
package acme;
message Order {
  message Line { string sku = 1; int32 count = 2; }
  int64 id = 1;
  string customer = 2;
  repeated Line lines = 3;
  optional string coupon = 4;
}
message Refund { int64 order_id = 1; double amount = 2; }
"""


@dataclass
class Line:
    sku: str
    count: int


@dataclass
class Order:
    id: int
    customer: str
    lines: list[Line]
    coupon: str | None = None


@dataclass
class Refund:
    order_id: int
    amount: float


@pytest.fixture(scope="module")
def pb2(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "generated_order.proto").write_text(ORDER.replace("acme", "acme.generated"))
    return generated_module(folder, "generated_order")


@pytest.fixture
def order_file(tmp_path: Path) -> Path:
    file = tmp_path / "order.proto"
    file.write_text(ORDER)
    return file


FRAME = 5
AN_ORDER = Order(7, "Ada", [Line("tea", 2), Line("milk", 0)])


def registered_file(registry: SchemaRegistry, subject: str) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(base64.b64decode(registry.version(subject).schema.text))


def test_a_record_begins_with_the_id_of_its_schema_and_the_index_of_its_message(registry: SchemaRegistry) -> None:
    data = bound(ks.Protobuf(Line), registry).serialize(Line("tea", 2))
    assert data == b"\x00" + (1).to_bytes(4, "big") + b"\x00" + b"\x0a\x03tea\x10\x02"


def test_a_class_gets_a_schema_whose_fields_are_numbered_in_their_order(registry: SchemaRegistry) -> None:
    bound(ks.Protobuf(Order), registry).serialize(AN_ORDER)
    file = registered_file(registry, "orders-value")
    assert [message.name for message in file.message_type] == ["Order", "Line"]
    fields = [(field.name, field.number, field.proto3_optional) for field in file.message_type[0].field]
    assert fields == [("id", 1, False), ("customer", 2, False), ("lines", 3, False), ("coupon", 4, True)]


def test_message_names_the_message_of_a_class(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(Line, message="acme.OrderLine", subject="record"), registry)
    serde.serialize(Line("tea", 2))
    assert registry.subjects() == ["acme.OrderLine"]
    assert registered_file(registry, "acme.OrderLine").package == "acme"


def test_what_a_class_wrote_is_read_as_the_class_and_as_a_dict(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(Order), registry)
    data = serde.serialize(AN_ORDER)
    assert serde.deserialize(data) == AN_ORDER
    lines = [{"sku": "tea", "count": 2}, {"sku": "milk", "count": 0}]
    as_dict = {"id": 7, "customer": "Ada", "lines": lines, "coupon": None}
    assert bound(ks.Protobuf(), registry).deserialize(data) == as_dict


def test_a_generated_class_gives_its_messages(registry: SchemaRegistry, pb2: Any) -> None:
    serde = bound(ks.Protobuf(pb2.Order), registry)
    order = pb2.Order(id=7, customer="Ada", lines=[{"sku": "tea", "count": 2}])
    assert serde.deserialize(serde.serialize(order)) == order
    assert type(serde.deserialize(serde.serialize(order))) is pb2.Order


def test_the_second_message_and_a_nested_one_have_longer_indexes(registry: SchemaRegistry, pb2: Any) -> None:
    refund = bound(ks.Protobuf(pb2.Refund), registry).serialize(pb2.Refund(order_id=1))
    line = bound(ks.Protobuf(pb2.Order.Line), registry).serialize(pb2.Order.Line(count=1))
    assert refund[5:] == b"\x02\x02" + b"\x08\x01"
    assert line[5:] == b"\x04\x00\x00" + b"\x10\x01"
    assert bound(ks.Protobuf(pb2.Order.Line), registry).deserialize(line) == pb2.Order.Line(count=1)
    assert bound(ks.Protobuf(), registry).deserialize(refund) == {"order_id": 1, "amount": 0.0}


def test_a_file_gives_dicts_or_the_class_that_type_names(registry: SchemaRegistry, order_file: Path) -> None:
    dicts = bound(ks.Protobuf(order_file, message="Order"), registry)
    objects = bound(ks.Protobuf(str(order_file), message="acme.Order", type=Order), registry)
    data = objects.serialize(AN_ORDER)
    assert objects.deserialize(data) == AN_ORDER
    assert dicts.deserialize(data)["lines"][0] == {"sku": "tea", "count": 2}
    assert dicts.serialize(dicts.deserialize(data)) == data


def test_a_file_may_be_named_from_the_working_folder(
    registry: SchemaRegistry, order_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(order_file.parent)
    serde = bound(ks.Protobuf("order.proto", message="Refund"), registry)
    assert serde.deserialize(serde.serialize({"order_id": 7})) == {"order_id": 7, "amount": 0.0}


def test_a_file_may_be_given_as_its_text(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf('syntax = "proto3"; message Point { int32 x = 1; }'), registry)
    assert serde.deserialize(serde.serialize({"x": -3})) == {"x": -3}


def test_a_dict_may_leave_fields_out_but_have_no_others(registry: SchemaRegistry, order_file: Path) -> None:
    serde = bound(ks.Protobuf(order_file, message="Order"), registry)
    assert serde.deserialize(serde.serialize({"id": 7}))["customer"] == ""
    with pytest.raises(SerdeError, match=r"does not fit acme\.Order"):
        serde.serialize({"id": 7, "costumer": "Ada"})


def test_a_file_with_several_messages_wants_a_name(order_file: Path, registry: SchemaRegistry) -> None:
    with pytest.raises(SerdeError, match=r"several messages: write message= with one of acme.Order, acme.Refund"):
        bound(ks.Protobuf(order_file), registry).serialize({})
    with pytest.raises(SerdeError, match=r"no message Ordre: write message="):
        bound(ks.Protobuf(order_file, message="Ordre"), registry).serialize({})


def test_a_file_that_does_not_compile_says_where(tmp_path: Path, registry: SchemaRegistry) -> None:
    (tmp_path / "bad.proto").write_text('syntax = "proto3"; message Order { int64 id = 0; }')
    with pytest.raises(SerdeError, match=r"bad.proto does not compile: .*Field numbers must be positive"):
        bound(ks.Protobuf(tmp_path / "bad.proto"), registry)
    with pytest.raises(SerdeError, match="there is no file"):
        bound(ks.Protobuf(tmp_path / "none.proto"), registry)


def test_without_grpcio_tools_a_file_names_the_extra(
    order_file: Path, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    with pytest.raises(SerdeError, match=r"pip install 'kstreams-dsl\[protobuf\]'"):
        bound(ks.Protobuf(order_file, message="Order"), registry)


@pytest.mark.parametrize("missing", ["google", "google.protobuf"])
def test_without_protobuf_the_name_says_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; import kstreams as ks; ks.Avro, ks.JsonSchema; ks.Protobuf"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last_line = done.stderr.strip().splitlines()[-1]
    assert last_line == (
        "ImportError: ks.Protobuf needs protobuf: install it with `pip install 'kstreams-dsl[registry]'`"
    )


def test_what_a_file_imports_is_registered_under_its_path(tmp_path: Path, registry: SchemaRegistry) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "country.proto").write_text(
        'syntax = "proto3"; package acme; message Country {string code=1;}'
    )
    (tmp_path / "acme" / "customer.proto").write_text(
        'syntax = "proto3"; package acme; import "acme/country.proto"; message Customer { Country country = 1; }'
    )
    (tmp_path / "sale.proto").write_text(
        'syntax = "proto3"; import "acme/customer.proto"; import "google/protobuf/timestamp.proto";'
        "message Sale { acme.Customer customer = 1; google.protobuf.Timestamp at = 2; }"
    )
    serde = bound(ks.Protobuf(tmp_path / "sale.proto"), registry)
    data = serde.serialize({"customer": {"country": {"code": "IS"}}})
    assert registry.subjects() == ["acme/country.proto", "acme/customer.proto", "orders-value"]
    sale = registry.version("orders-value").schema
    assert sale.references == (SchemaReference("acme/customer.proto", "acme/customer.proto", 1),)
    assert bound(ks.Protobuf(), registry).deserialize(data)["customer"] == {"country": {"code": "IS"}}


def test_what_the_folder_lacks_of_the_imports_the_registry_has(tmp_path: Path, registry: SchemaRegistry) -> None:
    country = 'syntax = "proto3"; package acme; message Country { string code = 1; }'
    registry.register("acme/country.proto", Schema(country, "PROTOBUF"))
    (tmp_path / "sale.proto").write_text(
        'syntax = "proto3";\nimport "acme/country.proto";\nmessage Sale { acme.Country country = 1; }'
    )
    serde = bound(ks.Protobuf(tmp_path / "sale.proto"), registry)
    assert serde.deserialize(serde.serialize({"country": {"code": "IS"}})) == {"country": {"code": "IS"}}


def test_schemas_that_others_registered_as_text_are_read(registry: SchemaRegistry, pb2: Any) -> None:
    number = registry.register("orders-value", Schema(ORDER, "PROTOBUF")).id
    data = b"\x00" + number.to_bytes(4, "big") + b"\x00" + pb2.Order(id=7, customer="Ada").SerializeToString()
    assert bound(ks.Protobuf(), registry).deserialize(data)["id"] == 7
    assert bound(ks.Protobuf(Order), registry).deserialize(data) == Order(7, "Ada", [])
    assert bound(ks.Protobuf(pb2.Order), registry).deserialize(data) == pb2.Order(id=7, customer="Ada")


def test_files_of_confluent_and_google_are_there_for_schemas_in_either_form(registry: SchemaRegistry) -> None:
    """As Java's converters of Kafka Connect write them."""
    text = """
        syntax = "proto3";
        import "confluent/meta.proto";
        import "confluent/type/decimal.proto";
        import "google/type/date.proto";
        message Sale {
          confluent.type.Decimal price = 1 [(confluent.field_meta) = { params: [{ key: "scale", value: "2" }] }];
          google.type.Date day = 2;
        }"""
    serde = bound(ks.Protobuf(text), registry)
    sale = {"price": Decimal("12.50"), "day": dt.date(2026, 11, 25)}
    data = serde.serialize(sale)
    assert serde.deserialize(data) == sale
    assert bound(ks.Protobuf(), registry).deserialize(data) == sale
    number = registry.register("as-text", Schema(text, "PROTOBUF")).id
    assert bound(ks.Protobuf(), registry).deserialize(data[:1] + number.to_bytes(4, "big") + data[5:]) == sale


def test_files_of_an_edition_are_read(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf('edition = "2023"; message Point { int32 x = 1; string name = 2; }'), registry)
    assert serde.deserialize(serde.serialize({"x": 0})) == {"x": 0, "name": None}


def test_without_registration_a_schema_must_be_known(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(Line, auto_register=False), registry)
    with pytest.raises(SchemaNotFoundError, match="there is no subject"):
        serde.serialize(Line("tea", 2))
    known = bound(ks.Protobuf(Line), registry).serialize(Line("tea", 2))
    assert serde.serialize(Line("tea", 2)) == known


def test_the_latest_version_of_the_subject_is_written_with_its_own_numbers(registry: SchemaRegistry) -> None:
    text = 'syntax = "proto3"; message Line { int32 count = 1; string sku = 9; string note = 10; }'
    number = registry.register("orders-value", Schema(text, "PROTOBUF")).id
    serde = bound(ks.Protobuf(Line, use_latest_version=True, strict=False), registry)
    data = serde.serialize(Line("tea", 2))
    assert data == b"\x00" + number.to_bytes(4, "big") + b"\x00" + b"\x08\x02\x4a\x03tea"
    assert serde.deserialize(data) == Line("tea", 2)


def test_nothing_declared_writes_with_the_latest_version(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema('syntax = "proto3"; message Line { int32 count = 1; }', "PROTOBUF"))
    serde = bound(ks.Protobuf(use_latest_version=True), registry)
    assert serde.deserialize(serde.serialize({"count": 3})) == {"count": 3}
    with pytest.raises(SerdeError, match="no schema to write topic orders with"):
        bound(ks.Protobuf(), registry).serialize({"count": 3})


def test_the_guid_may_stand_in_place_of_the_id(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(Refund, schema_id="header"), registry)
    data = serde.serialize(Refund(1, 2.5))
    assert data[:18] == b"\x01" + uuid.UUID(registry.version("orders-value").guid).bytes + b"\x00"
    assert serde.header_length(data) == 18
    assert serde.deserialize(data) == Refund(1, 2.5)


def test_many_records_of_several_messages_and_schemas_are_read_in_their_order(
    registry: SchemaRegistry, pb2: Any
) -> None:
    refunds = bound(ks.Protobuf(pb2.Refund), registry)
    lines = bound(ks.Protobuf(Line), registry)
    rows = [refunds.serialize(pb2.Refund(order_id=1)), lines.serialize(Line("a", 1)), refunds.serialize(pb2.Refund())]
    column = pa.array([rows[0], rows[1], None, rows[2]], pa.binary())
    read = bound(ks.Protobuf(), registry).decode_rows(column)
    assert read == [{"order_id": 1, "amount": 0.0}, {"sku": "a", "count": 1}, None, {"order_id": 0, "amount": 0.0}]


def test_fields_that_a_generated_class_does_not_know_are_kept_or_dropped(registry: SchemaRegistry, pb2: Any) -> None:
    newer = ORDER.replace("optional string coupon = 4;", "optional string coupon = 4; int32 priority = 5;")
    number = registry.register("orders-value", Schema(newer, "PROTOBUF")).id
    body = pb2.Order(id=7).SerializeToString() + b"\x28\x09"
    data = b"\x00" + number.to_bytes(4, "big") + b"\x00" + body
    kept = bound(ks.Protobuf(pb2.Order), registry).deserialize(data)
    dropped = bound(ks.Protobuf(pb2.Order, unknown="drop"), registry).deserialize(data)
    assert kept.SerializeToString() == body
    assert dropped.SerializeToString() == pb2.Order(id=7).SerializeToString()
    assert bound(ks.Protobuf(Order), registry).deserialize(data) == Order(7, "", [])
    assert bound(ks.Protobuf(), registry).deserialize(data)["priority"] == 9


def test_a_class_that_may_be_none_is_the_class(registry: SchemaRegistry) -> None:
    assert bound(ks.Protobuf(Line | None), registry).serialize(Line("tea", 2))[FRAME:] == b"\x00\x0a\x03tea\x10\x02"
    with pytest.raises(SerdeError, match=r"no Protobuf message can be derived from int: give ks\.Protobuf a class"):
        ks.Protobuf(int)


def test_a_message_of_another_class_is_refused(registry: SchemaRegistry, pb2: Any) -> None:
    with pytest.raises(SerdeError, match=r"is no acme\.generated\.Order"):
        bound(ks.Protobuf(pb2.Order), registry).serialize(pb2.Refund())
    with pytest.raises(SerdeError, match="cannot be written as Order"):
        bound(ks.Protobuf(Order), registry).serialize(Line("tea", 2))


class Created(msgspec.Struct):
    line: Line
    by: str | None = None


def test_a_topic_may_hold_messages_of_several_classes(registry: SchemaRegistry) -> None:
    serde = bound(ks.Protobuf(Created | Refund | Line), registry)
    values = [Refund(1, 2.5), Created(Line("tea", 2), "Ada"), Line("milk", 1), Refund(2, 0.0)]
    column = serde.encode_rows(values)
    assert [row[FRAME:7] for row in column.to_pylist()] == [b"\x02\x02", b"\x00\x0a", b"\x02\x04", b"\x02\x02"]
    assert serde.decode_rows(column) == values
    names = [message.name for message in registered_file(registry, "orders-value").message_type]
    assert names == ["Created", "Refund", "Line"]
    assert bound(ks.Protobuf(Refund), registry).deserialize(serde.serialize(values[0])) == values[0]
    with pytest.raises(SerdeError, match="is none of Created, Refund, Line"):
        serde.serialize(AN_ORDER)
    order = bound(ks.Protobuf(Order), registry).serialize(AN_ORDER)
    with pytest.raises(SerdeError, match="the message Order, but only Created, Refund, Line can be read"):
        serde.deserialize(order)
    with pytest.raises(SerdeError, match="no Protobuf message can be derived from int"):
        ks.Protobuf(Created | int)
    arrived = pickle.loads(pickle.dumps(ks.Protobuf(Created | Refund | Line)))
    assert bound(arrived, registry).serialize(values[1]) == serde.serialize(values[1])


def test_a_serde_says_what_is_missing_around_it() -> None:
    with pytest.raises(SerdeError, match=r"Protobuf\(Order\) reads and writes with the schema registry"):
        ks.Protobuf(Order).serialize(AN_ORDER)


def test_a_serde_travels(registry: SchemaRegistry, order_file: Path) -> None:
    for serde in (ks.Protobuf(Order), ks.Protobuf(order_file, message="Order", type=Order)):
        data = bound(serde, registry).serialize(AN_ORDER)
        arrived = pickle.loads(pickle.dumps(serde))
        assert bound(arrived, registry).deserialize(data) == AN_ORDER


def test_equal_keys_have_equal_bytes_whatever_the_order_of_a_map(registry: SchemaRegistry) -> None:
    @dataclass
    class Counts:
        by: dict[str, int]

    serde = bound(ks.Protobuf(Counts), registry, is_key=True)
    names = [f"n{number}" for number in range(50)]
    one = serde.serialize(Counts({name: 1 for name in names}))
    other = serde.serialize(Counts({name: 1 for name in reversed(names)}))
    assert one == other
