"""`.proto` files as a registry has them, without their text: what is printed of them compiles to the same."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema
from kstreams.schemas.proto_text import proto_text
from tests.support.schema_serdes import bound

TEXTS = {
    "fields": """syntax = "proto3";

package shop.v1;

import "google/protobuf/timestamp.proto";

message Order {
  reserved 9, 11 to 13, 1000 to max;
  reserved "old", "older";
  enum Size {
    option allow_alias = true;
    SMALL = 0;
    LITTLE = 0;
    LARGE = -5;
  }
  message Line {
    string sku = 1;
    repeated sint32 counts = 2 [packed = false];
  }
  int64 id = 1;
  optional string coupon = 2;
  repeated Order.Line lines = 3;
  map<string, Order.Line> by_sku = 4;
  Order.Size size = 5;
  google.protobuf.Timestamp at = 6;
  oneof paid_by {
    Card card = 7;
    bytes transfer = 8;
  }
  string of_old = 10 [json_name = "was", deprecated = true];
}

message Card {
  fixed64 number = 1;
}

enum State {
  OPEN = 0;
}""",
    "proto2": r"""syntax = "proto2";

message Order {
  required int64 id = 1;
  optional string name = 2 [default = "a \"b\" \\ c"];
  optional double share = 3 [default = 0.5];
  oneof of {
    int32 one = 4;
    bool other = 5;
  }
}""",
}


def compiled(text: str, folder: Path) -> FileDescriptorProto:
    (folder / "order.proto").write_text(text)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={folder / 'set'}"]
    subprocess.run([*command, "order.proto"], check=True)
    (file,) = FileDescriptorSet.FromString((folder / "set").read_bytes()).file
    return file


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_printed_compiles_to_the_same_file(text: str, tmp_path: Path) -> None:
    file = compiled(text, tmp_path)
    assert compiled(proto_text(file), tmp_path) == file


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_file_is_printed_as_one_would_write_it(text: str, tmp_path: Path) -> None:
    file = compiled(text, tmp_path)
    names = {"was"}
    for message in file.message_type:
        for field in (*message.field, *(each for nested in message.nested_type for each in nested.field)):
            if field.json_name not in names:
                field.ClearField("json_name")
    assert proto_text(file) == text


@dataclass
class Order:
    id: int
    coupon: str | None = None


def test_a_local_registry_knows_a_schema_in_both_forms(tmp_path: Path) -> None:
    settings = {"schema.registry.url": "local:", "log.dir": tmp_path}
    text = 'syntax = "proto3"; message Order { int64 id = 1; optional string coupon = 2; } // by hand'
    with closing(registry_of(Config.of(settings))) as registry:
        by_hand = registry.register("orders-value", Schema(text, "PROTOBUF"))
        serde = bound(ks.Protobuf(Order, auto_register=False), registry)
        assert serde.deserialize(serde.serialize(Order(1, "x"))) == Order(1, "x")
        derived = ks.Protobuf(Order).declared_schema()
        assert derived is not None
        assert registry.register("orders-value", derived) == by_hand
        assert registry.register("others-value", derived).version == 1
        assert registry.register("others-value", Schema(text, "PROTOBUF")).version == 1
