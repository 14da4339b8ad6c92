"""Small records as Protobuf and as JSON with a schema registry, each way, beside confluent-kafka's own serializers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import kstreams as ks
from benchmarks import baseline
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas.serialized_proto import deserialized
from kstreams.serdes.base import SerdeUse

ROWS, BATCH, RUNS = 100_000, 10_000, 3


@dataclass
class Order:
    """A small record."""

    id: int
    customer: str
    amount: float
    paid: bool
    at_ms: int
    coupon: str | None = None


class OrderStruct(msgspec.Struct):
    """The same."""

    id: int
    customer: str
    amount: float
    paid: bool
    at_ms: int
    coupon: str | None = None


def run() -> dict[str, float]:
    """Records a second, in one thread."""
    orders = [Order(at, f"customer-{at % 100}", at / 4, at % 2 == 0, 1_700_000_000_000 + at) for at in range(ROWS)]
    figures = {"plain loop": baseline.rate(ROWS, lambda: _plain(orders))}
    with tempfile.TemporaryDirectory() as folder:
        registry = registry_of(Config.of({"schema.registry.url": "local:", "log.dir": folder}))
        config = Config.of({})
        figures |= _protobuf(orders, SerdeUse("orders", False, config, lambda: registry))
        figures |= _json(orders, SerdeUse("orders-json", False, config, lambda: registry))
        registry.close()
    return figures


def _protobuf(orders: list[Order], use: SerdeUse) -> dict[str, float]:
    generated = _generated(ks.Protobuf(Order).declared_schema().text)
    messages = [generated(**asdict(order)) for order in orders]
    structs = [OrderStruct(**asdict(order)) for order in orders]
    figures = _both_ways("Protobuf, message class", ks.Protobuf(generated).of_topic(use), messages)
    figures |= _both_ways("Protobuf, dataclass", ks.Protobuf(Order).of_topic(use), orders)
    figures |= _both_ways("Protobuf, Struct", ks.Protobuf(OrderStruct, message="Order").of_topic(use), structs)
    written = ks.Protobuf(Order).of_topic(use).encode_rows(orders)
    figures["Protobuf, dicts: read"] = _rate(ks.Protobuf().of_topic(use).decode_rows, _batches(written))
    client = SchemaRegistryClient.new_client({"url": "mock://benchmark"})
    serialize = ProtobufSerializer(generated, client)
    deserialize = ProtobufDeserializer(generated, {}, client)
    return figures | _confluent("Protobuf, confluent-kafka's message class", serialize, deserialize, messages)


def _json(orders: list[Order], use: SerdeUse) -> dict[str, float]:
    serde = ks.JsonSchema(Order).of_topic(use)
    text = ks.JsonSchema(Order).declared_schema().text
    figures = _both_ways("JSON Schema, dataclass", serde, orders)
    some = orders[:BATCH]
    figures |= _both_ways("JSON Schema, dataclass, validated", ks.JsonSchema(Order, validate=True).of_topic(use), some)
    client = SchemaRegistryClient.new_client({"url": "mock://benchmark-json"})
    for name, validate, rows in (("", False, orders), (", validated", True, some)):
        conf = {"validate": validate}
        serialize = JSONSerializer(text, client, lambda order, context: asdict(order), conf)
        deserialize = JSONDeserializer(text, lambda dict_, context: Order(**dict_), client, conf)
        figures |= _confluent(f"JSON Schema, confluent-kafka's, dataclass{name}", serialize, deserialize, rows)
    return figures


def _both_ways(name: str, serde: Any, values: list[Any]) -> dict[str, float]:
    column = serde.encode_rows(values)
    assert serde.decode_rows(column) == values
    lists = [values[at : at + BATCH] for at in range(0, len(values), BATCH)]
    return {
        f"{name}: write": _rate(serde.encode_rows, lists),
        f"{name}: read": _rate(serde.decode_rows, _batches(column)),
    }


def _confluent(name: str, serialize: Any, deserialize: Any, values: list[Any]) -> dict[str, float]:
    context = SerializationContext("orders", MessageField.VALUE)
    rows = [serialize(value, context) for value in values]
    assert [deserialize(row, context) for row in rows[:10]] == values[:10]
    return {
        f"{name}: write": _rate(lambda batch: [serialize(value, context) for value in batch], [values]),
        f"{name}: read": _rate(lambda batch: [deserialize(row, context) for row in batch], [rows]),
    }


def _rate(work: Callable[[Any], Any], batches: Sequence[Any]) -> float:
    """Records a second, of the best of some runs."""
    rows = sum(map(len, batches))
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        for batch in batches:
            work(batch)
        best = min(best, time.perf_counter() - start)
    return rows / best


def _batches(column: pa.Array) -> list[pa.Array]:
    return [column.slice(at, BATCH) for at in range(0, len(column), BATCH)]


def _generated(text: str) -> Any:
    """The class of the first message of a schema."""
    file: descriptor_pb2.FileDescriptorProto = deserialized(text, "benchmark_order.proto")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(file.message_type[0].name))


def _plain(orders: list[Order]) -> None:
    """A sum by key, in a dict."""
    totals: dict[str, float] = {}
    for order in orders:
        totals[order.customer] = totals.get(order.customer, 0.0) + order.amount
