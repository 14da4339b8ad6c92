"""Avro as columns: what expressions read and write of it is what the records would give, or it is left to them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.log.schema_registries import registry_of
from kstreams.serdes.avro.columns import AvroColumnReader, AvroColumnWriter, NoColumnsError
from kstreams.serdes.avro.kinds import PLAIN
from kstreams.serdes.avro.reading import AvroReader
from kstreams.serdes.avro.schema import parsed
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.typed import same_value
from tests.native.world import World
from tests.support.avro_schemas import by_fastavro

FRAME = b"\0\0\0\0\1"
COLUMN_TYPES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "int": (st.integers(-(2**31), 2**31 - 1), pa.int64()),
    "long": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "double": (st.floats(), pa.float64()),
    "boolean": (st.booleans(), pa.bool_()),
    "string": (st.text(st.characters(exclude_categories=["Cs"]), max_size=200), pa.string()),
}
"""What is both read and written as columns."""


def record(fields: list[Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": f"f{n}", "type": t} for n, t in enumerate(fields)]}


@st.composite
def schemas_and_rows(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    types = draw(st.lists(st.sampled_from(sorted(COLUMN_TYPES)), min_size=1, max_size=5))
    unions = draw(st.lists(st.sampled_from([None, 0, 1]), min_size=len(types), max_size=len(types)))
    schema = record([t if at is None else [t, "null"][:: -1 if at else 1] for t, at in zip(types, unions, strict=True)])
    values = [
        COLUMN_TYPES[t][0] if at is None else st.none() | COLUMN_TYPES[t][0]
        for t, at in zip(types, unions, strict=True)
    ]
    row = st.fixed_dictionaries({f"f{n}": value for n, value in enumerate(values)})
    return schema, draw(st.lists(row, min_size=1, max_size=20))


def encoded(schema: Any, rows: list[Any]) -> pa.Array:
    return pa.array([FRAME + by_fastavro(schema, row) for row in rows], pa.binary())


def names_of(schema: Any) -> list[str]:
    return [field["name"] for field in schema["fields"]]


@given(schemas_and_rows(), st.integers(0, 3))
def test_columns_hold_what_records_hold_and_become_the_same_bytes(case: Any, first: int) -> None:
    schema, rows = case
    column, names, of_schema = encoded(schema, rows), names_of(schema), parsed(json.dumps(schema))
    columns = AvroColumnReader(of_schema, len(FRAME), names).columns(column.slice(first))
    for name in names:
        assert same_value([row[name] for row in rows[first:]], columns[name].to_pylist())
    assert AvroColumnWriter(of_schema, FRAME).encode(columns).equals(column.slice(first))


@given(schemas_and_rows(), st.data())
def test_of_damaged_bytes_columns_give_what_records_give_or_refuse(case: Any, data: st.DataObject) -> None:
    schema, rows = case
    intact, of_schema = encoded(schema, rows).to_pylist(), parsed(json.dumps(schema))
    row = data.draw(st.integers(0, len(rows) - 1))
    damaged = bytearray(intact[row])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(len(FRAME), len(damaged)))
        damaged[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    intact[row] = bytes(damaged)
    reader = AvroReader(of_schema, of_schema, PLAIN, len(FRAME))
    with suppress(SerdeError, pa.ArrowException):
        columns = AvroColumnReader(of_schema, len(FRAME), names_of(schema)).columns(pa.array(intact, pa.binary()))
        assert same_value(reader.many(intact), pa.table(columns).to_pylist())


def test_a_field_is_read_past_all_kinds_of_others() -> None:
    schema = record(
        [
            {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]},
            {"type": "fixed", "name": "Digest", "size": 3},
            {"type": "record", "name": "Address", "fields": [{"name": "street", "type": ["null", "string"]}]},
            {"type": "long", "logicalType": "timestamp-millis"},
            "null",
            "float",
            "bytes",
            "long",
        ]
    )
    values = ["BLUE", b"abc", {"street": "Main"}, 1_700_000_000_000, None, 1.5, b"xyz", 42]
    rows = [{f"f{n}": value for n, value in enumerate(values)}] * 3
    columns = AvroColumnReader(parsed(json.dumps(schema)), len(FRAME), ["f7"]).columns(encoded(schema, rows))
    assert columns["f7"].to_pylist() == [42] * 3


@pytest.mark.parametrize(
    "kind",
    [{"type": "array", "items": "int"}, {"type": "long", "logicalType": "timestamp-millis"}, ["null", "int", "string"]],
    ids=["array", "timestamp", "union of three"],
)
def test_what_columns_cannot_hold_is_left_to_records(kind: Any) -> None:
    with pytest.raises(NoColumnsError):
        AvroColumnReader(parsed(json.dumps(record([kind]))), len(FRAME), ["f0"])


@dataclass
class Event:
    user: str
    amount: float
    visits: int | None = None


@dataclass
class Payment:
    user: str
    cents: float
    visits: int | None


OLD = {
    "type": "record",
    "name": "Event",
    "fields": [{"name": "user", "type": "string"}, {"name": "amount", "type": "double"}],
}


def payments() -> ks.Topology:
    builder = ks.StreamsBuilder()
    events = builder.stream("events", key=str, value=ks.Avro(Event)).filter(ks.col("amount") > 50)
    made = ks.struct(user=ks.col("user"), cents=ks.col("amount") * 100, visits=ks.col("visits"))
    events.map_values(made, value=ks.Avro(Payment)).to("payments")
    return builder.build()


@pytest.mark.parametrize("mixed", [False, True], ids=["one schema", "two schemas, and tombstones"])
def test_an_application_writes_the_same_by_columns_and_by_records(tmp_path: Path, mixed: bool) -> None:
    written = []
    for number, min_rows in enumerate((1, 1_000_000)):
        home = tmp_path / str(number)
        world = World(home, **{"schema.registry.url": "local:", "columns.min.rows": min_rows})
        world.create("events")
        world.create("payments")
        write_events(world, mixed=mixed)
        world.run(payments(), once=True)
        written.append(world.rows("payments", bytes, bytes))
    assert written[0] == written[1]
    assert len(written[0]) > 100


def write_events(world: World, *, mixed: bool) -> None:
    config = Config.of(world.settings)
    registry = registry_of(config)
    new, old = (serde.of_topic(SerdeUse("events", False, config, lambda: registry)) for serde in SERDES)
    with world.log() as log, log.producer() as producer:
        for n in range(500):
            value = new.serialize(Event(f"u{n % 7}", n * 0.7, None if n % 3 else n))
            if mixed and n % 5 == 0:
                value = old.serialize({"user": f"old {n}", "amount": n * 0.5})
            producer.send("events", b"k", None if mixed and n % 50 == 49 else value, timestamp=n)
    registry.close()


SERDES = (ks.Avro(Event), ks.Avro(json.dumps(OLD)))
