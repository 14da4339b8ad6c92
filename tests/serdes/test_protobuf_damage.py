"""Damaged Protobuf records: an error of the record, or what google's parser says of the same bytes; nothing else."""

from __future__ import annotations

import base64
import datetime as dt
import enum
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

import kstreams as ks
from kstreams.errors import SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference
from tests.support.schema_serdes import bound, message_class, registry_of_this_run

FRAME = 5
QUICK, MANY = 3_000, 100_000


@dataclass
class DamagedPart:
    name: str
    numbers: list[int] = field(default_factory=list)
    inner: DamagedPart | None = None


class DamagedCard(msgspec.Struct, tag=True):
    number: str


class DamagedTransfer(msgspec.Struct, tag=True):
    amount: int


@dataclass
class Damaged:
    """Whatever a message of it holds, the class holds as well."""

    id: int
    name: str
    data: bytes
    on: bool
    part: DamagedPart | None
    parts: list[DamagedPart]
    counts: dict[str, int]
    by: DamagedCard | DamagedTransfer | None
    share: float = 0.5
    note: str | None = None


class DamagedState(enum.Enum):
    OPEN = 0
    DONE = 1


@dataclass
class DamagedTimes:
    """Not every message of it is a value of the class."""

    at: dt.datetime
    took: dt.timedelta
    day: dt.date
    clock: dt.time
    price: Decimal
    state: DamagedState
    more: dict[str, Any]


A_RECORD = Damaged(
    7, "Ada ü", b"\x00\x01", True, DamagedPart("a", [1, -2, 300], DamagedPart("b")), [DamagedPart("c")],
    {"x": 1, "y": -1}, DamagedTransfer(5), 2.5, "n",
)  # fmt: skip
TIMES = DamagedTimes(
    dt.datetime(2026, 11, 25, 12, tzinfo=dt.UTC), dt.timedelta(seconds=-5, microseconds=7), dt.date(2026, 11, 25),
    dt.time(23, 59), Decimal("-12.50"), DamagedState.DONE, {"a": [1, None, {"b": "c"}]},
)  # fmt: skip


def damaged(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Bytes with bits flipped, cut off, cut out, doubled, and put in."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            _DAMAGES[chance.randrange(len(_DAMAGES))](changed, chance)
        yield bytes(changed)


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _cut_off(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _cut_out(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.randrange(1, 4)]


def _put_in(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = chance.randbytes(chance.randrange(1, 6))


def _double(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    data[at:at] = data[at : at + chance.randrange(1, 9)]


_DAMAGES = (_flip, _flip, _cut_off, _cut_out, _put_in, _double)


def _against_google(count: int) -> None:
    serde = bound(ks.Protobuf(Damaged), registry_of_this_run())
    cls = message_class(serde.declared_schema(), "Damaged")
    whole = serde.serialize(A_RECORD)
    outcomes = {"read": 0, "refused": 0}
    for body in damaged(whole[FRAME + 1 :], 36, count):
        try:
            read = serde.deserialize(whole[: FRAME + 1] + body)
        except SerdeError:
            outcomes["refused"] += 1
            with pytest.raises(DecodeError):
                cls.FromString(body)
        else:
            outcomes["read"] += 1
            message = cls.FromString(body)
            message.DiscardUnknownFields()
            again = cls.FromString(serde.serialize(read)[FRAME + 1 :])
            assert again == message or "nan" in repr(read)
    assert min(outcomes.values()) > count // 20


def _read_or_refused(count: int) -> None:
    registry = registry_of_this_run()
    serde = bound(ks.Protobuf(DamagedTimes), registry)
    whole = serde.serialize(TIMES)
    as_dicts = bound(ks.Protobuf(use_latest_version=True), registry)
    refused = 0
    for data in damaged(whole, 36, count):
        for reader in (serde, as_dicts):
            try:
                read = reader.deserialize(data)
                assert reader.deserialize(reader.serialize(read)) == read or "nan" in repr(read).lower()
            except SerdeError:
                refused += 1
    assert refused > count // 4


def test_damaged_bodies_are_read_as_google_reads_them_or_refused() -> None:
    _against_google(QUICK)


def test_damaged_records_raise_nothing_but_serde_errors() -> None:
    _read_or_refused(QUICK // 3)


@pytest.mark.slow
def test_100_000_damaged_bodies_are_read_as_google_reads_them_or_refused() -> None:
    _against_google(MANY)


@pytest.mark.slow
def test_100_000_damaged_records_raise_nothing_but_serde_errors() -> None:
    _read_or_refused(MANY)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x01",
        b"\x00\x00\x00\x00\x02\x00",
        b"\x01" + bytes(16) + b"\x00",
        b"\x02\x00\x00\x00\x01\x00",
        b"\x00\x00\x00\x00\x01\x02",
        b"\x00\x00\x00\x00\x01\x02\x04",
        b"\x00\x00\x00\x00\x01\x01",
        b"\x00\x00\x00\x00\x01\xfe\xff\xff\xff\x0f",
        b"\x00\x00\x00\x00\x01" + b"\xff" * 20,
        b"\x00\x00\x00\x00\x01\x02\x01",
        b"\x00\x00\x00\x00\x01\x00\x0a\xff\xff\xff\xff\x07",
        b"\x00\x00\x00\x00\x01\x00" + b"\x32\x7f" * 200,
        b'{"id": 7}',
    ],
    ids=repr,
)
def test_a_frame_or_an_index_that_is_none_is_an_error(data: bytes) -> None:
    registry = registry_of_this_run()
    serde = bound(ks.Protobuf(Damaged), registry)
    serde.serialize(A_RECORD)
    with pytest.raises(SerdeError):
        serde.deserialize(data)


@pytest.mark.parametrize("name", ["x = 1; import os", "a b", "", "x\n", "1x", "x#"])
def test_a_schema_with_names_that_are_none_is_an_error(name: str) -> None:
    file = FileDescriptorProto(name="bad.proto", syntax="proto3")
    file.message_type.add(name="Bad").field.add(name=name, number=1, type=3, label=1)
    registry = registry_of_this_run()
    text = base64.b64encode(file.SerializeToString()).decode()
    number = registry.register(f"bad-{name!r}", Schema(text, "PROTOBUF")).id
    with pytest.raises(SerdeError, match=r"is no valid \.proto file"):
        bound(ks.Protobuf(), registry).deserialize(b"\x00" + number.to_bytes(4, "big") + b"\x00\x08\x01")


def test_a_schema_whose_messages_hold_each_other_without_end_is_an_error() -> None:
    file = FileDescriptorProto(name="chain.proto", syntax="proto3")
    for at in range(3_000):
        field = file.message_type.add(name=f"M{at}").field.add(name="next", number=1, type=11, label=1)
        field.type_name = f".M{min(at + 1, 2_999)}"
    registry = registry_of_this_run()
    number = registry.register("chain", Schema(base64.b64encode(file.SerializeToString()).decode(), "PROTOBUF")).id
    frame = b"\x00" + number.to_bytes(4, "big") + b"\x00"
    with pytest.raises(SerdeError, match="too deep"):
        bound(ks.Protobuf(), registry).deserialize(frame)


def test_an_import_from_elsewhere_than_the_folder_is_an_error(tmp_path: Path) -> None:
    registry = registry_of_this_run()
    target = tmp_path / "written.proto"
    for path in (str(target), "../" * 12 + str(target)):
        registry.register(path, Schema('syntax = "proto3"; message Other { int32 x = 1; }', "PROTOBUF"))
        reference = SchemaReference(path, path, 1)
        text = f'syntax = "proto3"; import "{path}"; message Order {{ Other other = 1; }}'
        schema = RegisteredSchema(1, "", Schema(text, "PROTOBUF", (reference,)))
        with pytest.raises(SerdeError, match="is no path of an import"):
            ks.Protobuf().reader_of(schema, registry, 5)
    assert not target.exists()


def test_nesting_without_end_is_an_error() -> None:
    serde = bound(ks.Protobuf(DamagedPart), registry_of_this_run())
    frame = serde.serialize(DamagedPart("a"))[: FRAME + 1]
    body = b""
    for _ in range(5_000):
        body = b"\x1a" + _varint(len(body)) + body
    with pytest.raises(SerdeError):
        serde.deserialize(frame + body)


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def test_values_nested_too_deeply_are_refused_when_they_are_written() -> None:
    serde = bound(ks.Protobuf(DamagedPart), registry_of_this_run())
    part = DamagedPart("a")
    for _ in range(150):
        part = DamagedPart("a", [], part)
    with pytest.raises(SerdeError):
        serde.serialize(part)
