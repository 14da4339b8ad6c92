"""Damaged bytes: an error of the record, or a value that fastavro reads too; no hang, and no memory without bound."""

from __future__ import annotations

import dataclasses
import json
import random
import resource
import time
from typing import Any

import pytest

from kstreams.errors import SerdeError
from kstreams.serdes.avro.derived import derived_schema
from kstreams.serdes.avro.kinds import PLAIN, kind_of
from kstreams.serdes.avro.reading import AvroReader
from kstreams.serdes.avro.schema import parsed
from kstreams.serdes.avro.writing import AvroWriter
from kstreams.serdes.typed import same_value
from tests.support.avro_schemas import read_by_fastavro

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "prices", "type": {"type": "map", "values": "double"}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}


def an_order(random_: random.Random, depth: int = 2) -> dict[str, Any]:
    import datetime as dt
    from decimal import Decimal

    return {
        "id": random_.randrange(-(2**40), 2**40),
        "customer": "".join(random_.choices("abcdé", k=random_.randrange(12))),
        "tags": random_.choices(["a", "bb", "ccc"], k=random_.randrange(4)),
        "prices": {f"k{n}": random_.random() for n in range(random_.randrange(3))},
        "note": random_.choice([None, "hello"]),
        "color": random_.choice(["RED", "GREEN"]),
        "price": Decimal(random_.randrange(-(10**9) + 1, 10**9)).scaleb(-2),
        "at": dt.datetime.fromtimestamp(random_.randrange(2**31), dt.UTC),
        "next": an_order(random_, depth - 1) if depth and random_.random() < 0.3 else None,
    }


def damaged(data: bytes, random_: random.Random) -> bytes:
    """The bytes with a flipped bit, a hole, a longer or shorter end, or noise."""
    kind, place = random_.randrange(5), random_.randrange(len(data))
    if kind == 0:
        return data[:place] + bytes((data[place] ^ (1 << random_.randrange(8)),)) + data[place + 1 :]
    if kind == 1:
        return data[:place]
    if kind == 2:
        return data + random_.randbytes(random_.randrange(1, 5))
    if kind == 3:
        return data[:place] + random_.randbytes(random_.randrange(1, 8)) + data[place:]
    return random_.randbytes(random_.randrange(40))


def fuzz(count: int) -> None:
    schema = parsed(json.dumps(ORDER))
    writer, reader, random_ = AvroWriter(schema, PLAIN), AvroReader(schema, schema, PLAIN), random.Random(7)
    errors = 0
    for _ in range(count):
        order = an_order(random_)
        data = damaged(writer.one(order), random_)
        try:
            read = reader.one(data)
        except SerdeError:
            errors += 1
        else:
            assert same_value(read_by_fastavro(data, ORDER), read)
            assert same_value(reader.one(writer.one(read)), read)
    assert count / 3 < errors < count


def test_damaged_bytes() -> None:
    fuzz(2_000)


@pytest.mark.slow
def test_damaged_bytes_by_the_thousand() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fuzz(100_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"  # 2^62 - 1


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("string", HUGE + b"abc"),
        ("bytes", HUGE),
        ("string", b"\x05abc"),
        ({"type": "array", "items": "null"}, HUGE + b"\x00"),
        ({"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, HUGE + b"\x00"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, (b"\xfe\xff\xff\x00" * 400) + b"\x00"),
        ({"type": "array", "items": "int"}, HUGE + b"\x02" * 1000),
        ({"type": "array", "items": "int"}, b"\x01" + HUGE + b"\x02" * 10),
        ({"type": "map", "values": "null"}, HUGE + b"\x00" * 1000),
        ("long", b"\xff" * 20),
        ("int", b"\xff\xff\xff\xff\xff\x01"),
        ("double", b"\x00" * 7),
        ("string", b"\x02\xff"),
        (["null", "int"], b"\x04"),
        (["null", "int"], b"\x01"),
        ({"type": "enum", "name": "C", "symbols": ["A"]}, b"\x02"),
        ({"type": "enum", "name": "C", "symbols": ["A"]}, b"\x01"),
        ({"type": "fixed", "name": "F", "size": 4}, b"abc"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\xc8\x01" + b"\x7f" * 100),
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f"),
        ({"type": "long", "logicalType": "timestamp-micros"}, HUGE),
        ({"type": "long", "logicalType": "time-micros"}, HUGE),
        ({"type": "string", "logicalType": "uuid"}, b"\x04ab"),
        ("null", b"\x00"),
        ("long", b"\x02\x00"),
    ],
)
def test_bytes_that_no_writer_has_written(schema: Any, data: bytes) -> None:
    ours = parsed(json.dumps(schema))
    reader, began = AvroReader(ours, ours, PLAIN), time.monotonic()
    with pytest.raises(SerdeError):
        reader.one(data)
    assert time.monotonic() - began < 2


@dataclasses.dataclass
class Chain:
    next: Chain | None = None


def test_what_is_nested_too_deeply_is_an_error() -> None:
    schema = parsed(derived_schema(Chain))
    with pytest.raises(SerdeError, match="nested too deeply"):
        AvroReader(schema, schema, kind_of(Chain)).one(b"\x02" * 1_000_000 + b"\x00")
    value = None
    for _ in range(100_000):
        value = Chain(value)
    with pytest.raises(SerdeError, match="nested too deeply"):
        AvroWriter(schema, kind_of(Chain)).one(value)


def test_a_field_that_does_not_decode_is_named() -> None:
    schema = parsed(json.dumps(ORDER))
    with pytest.raises(SerdeError, match="field customer: "):
        AvroReader(schema, schema, PLAIN).one(b"\x02\x04\xff\xff")
    with pytest.raises(SerdeError, match="field prices: "):
        AvroReader(schema, schema, PLAIN).many([b"\x02\x04ab\x00\x02\x02a"])


@pytest.mark.parametrize("items", ["null", {"type": "record", "name": "E", "fields": []}, "int"])
def test_a_field_that_nobody_reads_may_not_claim_any_number_of_items(items: Any) -> None:
    fields = [{"name": "dropped", "type": {"type": "array", "items": items}}, {"name": "id", "type": "long"}]
    written = parsed(json.dumps({"type": "record", "name": "R", "fields": fields}))
    wanted = parsed(json.dumps({"type": "record", "name": "R", "fields": fields[1:]}))
    reader, began = AvroReader(written, wanted, PLAIN), time.monotonic()
    with pytest.raises(SerdeError):
        reader.one(HUGE + b"\x00" + b"\x02")
    assert time.monotonic() - began < 2
