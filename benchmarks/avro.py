"""Small records of Avro, read and written beside confluent-kafka's own serializers and fastavro, in one process."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import fastavro
import msgspec
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.serdes.base import SerdeUse

COUNT = 20_000


class Order(msgspec.Struct, frozen=True):
    """Five fields, one of them optional."""

    id: int
    customer: str
    amount: float
    paid: bool
    note: str | None = None


@dataclass(frozen=True)
class DataOrder:
    """The same as a dataclass."""

    id: int
    customer: str
    amount: float
    paid: bool
    note: str | None = None


class LaterOrder(msgspec.Struct, frozen=True):
    """A later version: without `paid`, and with a field of its own."""

    id: int
    customer: str
    amount: float
    note: str | None = None
    coupon: str | None = None


def run() -> dict[str, float]:
    """Records per second of CPU time in one thread, the best of nine."""
    rows = [
        {"id": n, "customer": f"c{n % 100}", "amount": n * 1.5, "paid": n % 2 == 0, "note": None if n % 3 else "hello"}
        for n in range(COUNT)
    ]
    with tempfile.TemporaryDirectory() as folder:
        config = Config.of(schema_registry_url="local:", log_dir=folder)
        with closing(registry_of(config)) as registry:
            use = SerdeUse("orders", False, config, lambda: registry)
            return {**_ours(rows, use), **_fastavro(rows), **_confluent(rows)}


def _ours(rows: list[dict[str, Any]], use: SerdeUse) -> dict[str, float]:
    figures: dict[str, float] = {}
    schema = ks.Avro(Order).declared_schema()
    assert schema is not None
    cases = {
        "Struct": (ks.Avro(Order), [Order(**row) for row in rows]),
        "dataclass": (ks.Avro(DataOrder, name="Order"), [DataOrder(**row) for row in rows]),
        "dicts": (ks.Avro(schema.text), rows),
    }
    for name, (unbound, values) in cases.items():
        serde = unbound.of_topic(use)
        column = serde.encode_rows(values)
        figures[f"ks.Avro, {name}: written"] = _per_second(lambda s=serde, v=values: s.encode_rows(v))
        figures[f"ks.Avro, {name}: read"] = _per_second(lambda s=serde, c=column: s.decode_rows(c))
        figures[f"ks.Avro, {name}: written one by one"] = _per_second(lambda s=serde, v=values: [*map(s.serialize, v)])
        if name == "Struct":
            later = ks.Avro(LaterOrder, name="Order").of_topic(use)
            figures["ks.Avro, Struct: read as a later version"] = _per_second(
                lambda s=later, c=column: s.decode_rows(c)
            )
        data = column.to_pylist()
        figures[f"ks.Avro, {name}: read one by one"] = _per_second(lambda s=serde, d=data: [*map(s.deserialize, d)])
    return figures


def _fastavro(rows: list[dict[str, Any]]) -> dict[str, float]:
    text = ks.Avro(Order).declared_schema()
    assert text is not None
    schema = fastavro.parse_schema(msgspec.json.decode(text.text))

    def written(row: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        return out.getvalue()

    data, newer = [written(row) for row in rows], ks.Avro(LaterOrder, name="Order").declared_schema()
    assert newer is not None
    later = fastavro.parse_schema(msgspec.json.decode(newer.text))
    return {
        "fastavro, dicts: written": _per_second(lambda: [written(row) for row in rows]),
        "fastavro, dicts: read": _per_second(
            lambda: [fastavro.schemaless_reader(io.BytesIO(each), schema, None) for each in data]
        ),
        "fastavro, dicts: read as a later version": _per_second(
            lambda: [fastavro.schemaless_reader(io.BytesIO(each), schema, later) for each in data]
        ),
    }


def _confluent(rows: list[dict[str, Any]]) -> dict[str, float]:
    text = ks.Avro(Order).declared_schema()
    assert text is not None
    client = SchemaRegistryClient.new_client({"url": "mock://benchmark"})
    write, read = AvroSerializer(client, text.text), AvroDeserializer(client)
    context = SerializationContext("orders", MessageField.VALUE)
    data = [write(row, context) for row in rows]
    return {
        "confluent-kafka, dicts: written": _per_second(lambda: [write(row, context) for row in rows]),
        "confluent-kafka, dicts: read": _per_second(lambda: [read(each, context) for each in data]),
    }


def _per_second(work: Callable[[], object]) -> float:
    return COUNT / min(_seconds(work) for _ in range(9))


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
