"""Which Protobuf schemas read which: pairs by the rules that Confluent documents."""

from __future__ import annotations

import pytest

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.rules import incompatibilities
from kstreams.schemas.references import ResolvedSchema

HEAD = 'syntax = "proto3"; '


def proto(text: str, *imports: tuple[str, str]) -> ResolvedSchema:
    head = "" if text.startswith("syntax") else HEAD
    return ResolvedSchema(head + text, "PROTOBUF", tuple((name, HEAD + each) for name, each in imports))


def reasons(reader: ResolvedSchema, writer: ResolvedSchema) -> list[str]:
    return [str(each) for each in incompatibilities(reader, writer)]


PROTO_2 = 'syntax = "proto2"; '
READS = {
    "a field more": ("message A { int32 a = 1; string b = 2; }", "message A { int32 a = 1; }"),
    "a field less": ("message A { int32 a = 1; }", "message A { int32 a = 1; string b = 2; }"),
    "a field of another name": ("message A { int32 b = 1; }", "message A { int32 a = 1; }"),
    "a message more": ("message A { } message B { }", "message A { }"),
    "int32 as int64": ("message A { int64 a = 1; }", "message A { int32 a = 1; }"),
    "uint64 as bool": ("message A { bool a = 1; }", "message A { uint64 a = 1; }"),
    "sint32 as sint64": ("message A { sint64 a = 1; }", "message A { sint32 a = 1; }"),
    "fixed32 as sfixed32": ("message A { sfixed32 a = 1; }", "message A { fixed32 a = 1; }"),
    "fixed64 as sfixed64": ("message A { sfixed64 a = 1; }", "message A { fixed64 a = 1; }"),
    "string as bytes": ("message A { bytes a = 1; }", "message A { string a = 1; }"),
    "an enum as int32": ("message A { int32 a = 1; }", "message A { E a = 1; } enum E { ZERO = 0; }"),
    "an enum with a constant more": ("enum E { ZERO = 0; ONE = 1; }", "enum E { ZERO = 0; }"),
    "an enum with a constant less": ("enum E { ZERO = 0; }", "enum E { ZERO = 0; ONE = 1; }"),
    "an enum that is gone": ("message A { }", "message A { } enum E { ZERO = 0; }"),
    "a string that may repeat": ("message A { repeated string a = 1; }", "message A { string a = 1; }"),
    "a message that may repeat": ("message A { repeated A a = 1; }", "message A { A a = 1; }"),
    "optional said": ("message A { optional int32 a = 1; }", "message A { int32 a = 1; }"),
    "one field in a new oneof": ("message A { oneof o { int32 a = 1; } }", "message A { int32 a = 1; }"),
    "a field more in a oneof": (
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { oneof o { int32 a = 1; } }",
    ),
    "a oneof that is gone": ("message A { int32 a = 1; }", "message A { oneof o { int32 a = 1; } }"),
    "required as optional": (
        f"{PROTO_2}message A {{ optional int32 a = 1; }}",
        f"{PROTO_2}message A {{ required int32 a = 1; }}",
    ),
    "the same by another syntax": (
        "message A { int32 a = 1; }",
        f"{PROTO_2}message A {{ optional int32 a = 1; }}",
    ),
    "maps of a wider type": ("message A { map<string, int64> m = 1; }", "message A { map<string, int32> m = 1; }"),
    "a service that is gone": ("message A { }", "message A { } service S { rpc Do (A) returns (A); }"),
}

DOES_NOT_READ = {
    "a message that is gone": ("message A { }", "message A { } message B { }", ["B: the message is gone"]),
    "a message within a message that is gone": (
        "message A { }",
        "message A { message B { } }",
        ["A.B: the message is gone"],
    ),
    "another package": ("package new; message A { }", "package old; message A { }", ["package: was old and is new"]),
    "string as int32": (
        "message A { int32 a = 1; }",
        "message A { string a = 1; }",
        ["A.a: was string and is int32"],
    ),
    "int32 as sint32": (
        "message A { sint32 a = 1; }",
        "message A { int32 a = 1; }",
        ["A.a: was int32 and is sint32"],
    ),
    "float as double": ("message A { double a = 1; }", "message A { float a = 1; }", ["A.a: was float and is double"]),
    "a message as a string": (
        "message A { string a = 1; } message B { }",
        "message A { B a = 1; } message B { }",
        ["A.a: was B and is string"],
    ),
    "a message as another": (
        "message A { C a = 1; } message B { } message C { }",
        "message A { B a = 1; } message B { } message C { }",
        ["A.a: was B and is C"],
    ),
    "a number that may repeat": (
        "message A { repeated int32 a = 1; }",
        "message A { int32 a = 1; }",
        ["A.a: was optional and is repeated: numbers are packed"],
    ),
    "a required field more": (
        f"{PROTO_2}message A {{ required int32 a = 1; }}",
        f"{PROTO_2}message A {{ }}",
        ["A.a: is required, and was not there before"],
    ),
    "a required field less": (
        f"{PROTO_2}message A {{ }}",
        f"{PROTO_2}message A {{ required int32 a = 1; }}",
        ["A.a: was required, and is gone"],
    ),
    "optional as required": (
        f"{PROTO_2}message A {{ required int32 a = 1; }}",
        f"{PROTO_2}message A {{ optional int32 a = 1; }}",
        ["A.a: was optional and is required"],
    ),
    "a field less in a oneof": (
        "message A { oneof o { int32 a = 1; } }",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        ["A.b: has left the oneof o"],
    ),
    "a field that entered a oneof": (
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { oneof o { int32 a = 1; } int32 b = 2; }",
        ["A.o: b entered a oneof of several fields that were there before"],
    ),
    "two fields in a new oneof": (
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { int32 a = 1; int32 b = 2; }",
        ["A.o: a, b entered a oneof of several fields that were there before"],
    ),
    "the values of a map": (
        "message A { map<string, string> m = 1; }",
        "message A { map<string, int32> m = 1; }",
        ["A.MEntry.value: was int32 and is string"],
    ),
    "a map as messages": (
        "message A { repeated B m = 1; } message B { }",
        "message A { map<string, int32> m = 1; }",
        ["A.m: was map and is B"],
    ),
}


@pytest.mark.parametrize("what", READS)
def test_what_can_be_read(what: str) -> None:
    reader, writer = READS[what]
    assert reasons(proto(reader), proto(writer)) == []


@pytest.mark.parametrize("what", DOES_NOT_READ)
def test_what_cannot_be_read_is_said_with_its_place(what: str) -> None:
    reader, writer, expected = DOES_NOT_READ[what]
    assert reasons(proto(reader), proto(writer)) == expected


def test_imports_are_found_among_the_references_and_those_of_protobuf() -> None:
    text = 'import "shop/item.proto"; import "google/protobuf/timestamp.proto"; '
    text += "message Order { Item item = 1; google.protobuf.Timestamp at = 2; }"
    schema = proto(text, ("shop/item.proto", "message Item { }"))
    assert reasons(schema, schema) == []
    with pytest.raises(RegistryError, match=r"shop/item\.proto"):
        reasons(proto(text), proto(text))


def test_what_is_no_schema_is_said_with_the_line() -> None:
    with pytest.raises(RegistryError, match=r"this is no Protobuf schema: schema\.proto:1:"):
        reasons(proto("mess A"), proto("mess A"))


def test_an_import_cannot_leave_its_folder() -> None:
    schema = proto("message A { }", ("../outside.proto", "message B { }"))
    with pytest.raises(RegistryError, match="is no path of an import"):
        reasons(schema, schema)
