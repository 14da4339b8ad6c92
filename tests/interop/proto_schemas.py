"""Three versions of a Protobuf schema with every type there is: fields come, go and get wider."""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

SCALARS = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"]
SCALARS += ["fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"]
TYPES = [*SCALARS, "Colour", "Address", "google.protobuf.Timestamp"]
HEAD = """syntax = "proto3";
package interop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Order {
  int64 number = 1;
  string note = 2;
"""
TAIL = """
  google.protobuf.Duration lasting = 200;
  google.protobuf.Int64Value wrapped_long = 201;
  google.protobuf.StringValue wrapped_string = 202;
  oneof payment {
    string cash = 210;
    Card card = 211;
    int64 bill = 212;
  }
  message Card { string digits = 1; repeated Address owners = 2; }
}
message Address { string street = 1; sint32 zip = 2; optional string floor = 3; }
enum Colour { RED = 0; GREEN = 1; BLUE = 5; }
"""


def _fields() -> str:
    lines = []
    for number, kind in enumerate(TYPES, 10):
        name = kind.lower().rpartition(".")[2]
        lines.append(f"  {kind} a_{name} = {number};")
        lines.append(f"  optional {kind} optional_{name} = {number + 30};")
        lines.append(f"  repeated {kind} many_{name} = {number + 60};")
        lines.append(f"  map<string, {kind}> map_of_{name} = {number + 90};")
    return "\n".join(lines)


FIRST = "\n  int32 wider = 220; string gone = 221;"
SECOND = "\n  int64 wider = 220; string added = 222;"
THIRD = "\n  int64 wider = 220; string added = 222; repeated int64 more_added = 223; optional Address place = 224;"
ORDERS = [HEAD + _fields() + more + TAIL for more in (FIRST, SECOND, THIRD)]
"""The three versions, the newest last."""

CUSTOMER_KEY = 'syntax = "proto3"; package interop; message CustomerKey { string region = 1; int64 id = 2; }'


def descriptors(text: str, path: Path) -> str:
    """Write the descriptors of a schema and of what it imports, for Java; the path of the file."""
    source = path.with_suffix(".proto")
    source.write_text(text)
    own = Path(protoc.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{path.parent}", f"-I{own}", "--include_imports", f"--descriptor_set_out={path}"]
    assert protoc.main([*arguments, str(source)]) == 0, sys.stderr
    return str(path)
