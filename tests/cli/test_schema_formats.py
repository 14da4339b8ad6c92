"""`consume` shows, and `produce` writes, topics whose schemas are in a registry, without any application."""

from __future__ import annotations

import json

import pytest

from kstreams.cli.commands.consume import reader_of
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import home_of
from kstreams.log.schema_registries import registry_of
from tests.support.avro_schemas import by_fastavro
from tests.support.schema_registry_server import RegistryServer

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "raw", "type": "bytes", "default": ""},
    ],
}
LINE = {"id": 7, "price": "12.50", "at": "2026-01-31T10:00:00Z", "note": "x", "raw": "AAE="}
PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
message Order {
  enum State { NEW = 0; PAID = 1; }
  int64 id = 1;
  State state = 2;
  google.protobuf.Timestamp paid_at = 3;
  google.protobuf.Duration took = 4;
  repeated string tags = 5;
  map<string, Item> items = 6;
  bytes raw = 7;
}
message Item { double price = 1; }
"""
PROTO_LINE = {
    "id": 7,
    "state": "PAID",
    "paid_at": "2026-01-31T10:00:00Z",
    "took": "PT3S",
    "tags": ["a", "b"],
    "items": {"one": {"price": 1.5}},
    "raw": "AAE=",
}
JSON_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}


@pytest.fixture(params=["local", "server"])
def shell(request, kstreams, monkeypatch):
    """Types commands where the configuration names a registry of one kind or the other."""
    (kstreams.folder / "order.avsc").write_text(json.dumps(ORDER))
    (kstreams.folder / "order.proto").write_text(PROTO)
    (kstreams.folder / "order.json").write_text(json.dumps(JSON_SCHEMA))
    kstreams.ok("topics", "create", "orders")
    if request.param == "local":
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", "local:")
        yield kstreams
        return
    with RegistryServer() as server:
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", server.url)
        yield kstreams


def consumed(shell, *options):
    rows = shell.ok("consume", "orders", "--from-beginning", "--until-end", "--json", *options).json_lines()
    return [(row["key"], row["value"]) for row in rows]


def send(key: bytes | None, value: bytes, headers=()) -> None:
    """Write bytes as another producer does, which notes nothing in the settings of the topic."""
    with home_of(Config.load()).open() as log, log.producer() as producer:
        producer.send("orders", key, value, timestamp=0, headers=headers)


def stored() -> bytes:
    """The bytes of the first value."""
    with home_of(Config.load()).open() as log, log.consumer() as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_beginning([TopicPartition("orders", 0)])
        (batch, *_) = consumer.poll(1.0)
        return batch.values[0].as_py()


@pytest.mark.parametrize(
    ("kind", "file", "line"),
    [("avro", "order.avsc", LINE), ("protobuf", "order.proto", PROTO_LINE), ("json-schema", "order.json", {"id": 7})],
)
def test_a_line_of_json_is_written_and_read(shell, kind, file, line):
    shell.ok("schemas", "register", "orders-value", file)
    shell.ok("produce", "orders", "--value", kind, "--schema", "orders-value", stdin=json.dumps(line) + "\n")
    assert stored()[:5] == b"\x00\x00\x00\x00\x01"
    assert consumed(shell, "--value", kind) == [(None, line)]
    assert consumed(shell) == [(None, line)], "the settings of the topic say it"


def test_what_consume_prints_can_be_produced_again(shell):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    shell.ok("produce", "orders", "--value", "avro", stdin=f"{json.dumps(LINE)}\n")
    shown = shell.ok("consume", "orders", "--from-beginning", "--until-end", "--json").out
    shell.ok("topics", "create", "copy")
    shell.ok("produce", "copy", "--json", "--value", "avro", "--schema", "orders-value", stdin=shown)
    again = shell.ok("consume", "copy", "--from-beginning", "--until-end", "--json").out
    assert again == shown.replace('"orders"', '"copy"')


def test_the_bytes_are_those_of_fastavro(shell):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    shell.ok("produce", "orders", "--value", "avro", stdin='{"id": 7, "price": 12.5, "at": 1000, "note": null}\n')
    plain = {"id": 7, "price": b"\x04\xe2", "at": 1000, "note": None, "raw": b""}
    without_logical = json.loads(json.dumps(ORDER).replace("logicalType", "_"))
    assert stored() == b"\x00\x00\x00\x00\x01" + by_fastavro(without_logical, plain)


def test_a_value_of_a_union_may_be_tagged_as_in_the_json_of_avro(shell):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    shell.ok("produce", "orders", "--value", "avro", stdin=json.dumps({**LINE, "note": {"string": "x"}}) + "\n")
    assert consumed(shell) == [(None, LINE)]


def test_keys_have_a_schema_too(shell):
    (shell.folder / "key.avsc").write_text('"string"')
    shell.ok("schemas", "register", "orders-key", "key.avsc")
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    line = json.dumps({"id": 7, "price": 1, "at": 0})
    shell.ok("produce", "orders", "-s", "|", "--key-type", "avro", "--value", "avro", stdin=f"EWR|{line}\n")
    ((key, _),) = consumed(shell, "--key", "avro", "--value", "avro")
    assert key == "EWR"


def test_what_is_written_by_others_is_known_by_its_id(shell):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    data = by_fastavro({"type": "record", "name": "A", "fields": ORDER["fields"][:1]}, {"id": 7})
    (shell.folder / "small.avsc").write_text(json.dumps({"type": "record", "name": "A", "fields": ORDER["fields"][:1]}))
    shell.ok("schemas", "register", "small", "small.avsc")
    send(b"k", b"\x00\x00\x00\x00\x02" + data)
    send(b"\x00\x00\x00\x00\x00\x00\x00\x07", b"\x00\x00\x00\x00\x09" + data)
    send(b"text", b"plain")
    assert consumed(shell) == [
        ("k", {"id": 7}),
        ({"base64": "AAAAAAAAAAc="}, {"base64": "AAAAAAkO"}),
        ("text", "plain"),
    ]


def test_a_guid_in_a_header_is_known_too(shell):
    shell.ok("schemas", "register", "orders-value", "order.json")
    (shown,) = shell.ok("schemas", "show", "orders-value", "--json").json_lines()
    guid = b"\x01" + bytes.fromhex(shown["guid"].replace("-", ""))
    send(None, b'{"id": 7}', headers=(("__value_schema_id", guid),))
    assert consumed(shell, "--value", "json-schema") == [(None, {"id": 7})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "x", "price": 1, "at": 0}', "field id: 'x' is no int"),
        ('{"id": 1, "price": 1.005, "at": 0}', "digits"),
        ('{"id": 1, "at": 0}', "lacks the field price"),
        ('{"id": 1, "price": 1, "at": "noon"}', "field at: 'noon' is no datetime"),
        ('{"id": 1, "price": 1, "at": 0, "nots": 1}', "no field nots"),
        ("{", "is no JSON"),
    ],
)
def test_a_line_that_does_not_fit_is_named(shell, line, reason):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    outcome = shell("produce", "orders", "--value", "avro", stdin=f"{line}\n")
    assert outcome.status == 1
    assert "line 1 of the input was not written" in outcome.err
    assert reason in outcome.err


def test_a_message_that_does_not_fit_is_named(shell):
    shell.ok("schemas", "register", "orders-value", "order.proto")
    for line, reason in (
        ('{"idd": 1}', "no field idd"),
        ('{"paid_at": "noon"}', "field paid_at: 'noon' is no datetime"),
    ):
        outcome = shell("produce", "orders", "--value", "protobuf", stdin=f"{line}\n")
        assert outcome.status == 1
        assert reason in outcome.err


def test_a_document_that_is_not_valid_is_refused(shell):
    shell.ok("schemas", "register", "orders-value", "order.json")
    outcome = shell("produce", "orders", "--value", "json-schema", stdin='{"id": "seven"}\n')
    assert outcome.status == 1
    assert "id" in outcome.err


def test_a_subject_that_is_not_there_and_one_of_another_type_are_refused(shell):
    outcome = shell("produce", "orders", "--value", "avro", stdin="{}\n")
    assert outcome.status == 1
    assert "kstreams schemas register orders-value FILE" in outcome.err
    shell.ok("schemas", "register", "orders-value", "order.json")
    outcome = shell("produce", "orders", "--value", "avro", stdin="{}\n")
    assert "write with json-schema" in outcome.err


def test_a_registry_that_is_away_is_named_and_plain_topics_are_shown_all_the_same(kstreams, monkeypatch):
    monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_MAX_RETRIES", "0")
    kstreams.ok("topics", "create", "orders")
    send(b"k", b"\x00\x00\x00\x00\x02data")
    send(b"k", b"plain")
    outcome = kstreams.ok("consume", "orders", "--from-beginning", "--until-end")
    assert outcome.err.count("without the schema registry") == 1
    assert "127.0.0.1:9" in outcome.err
    assert "plain" in outcome.out
    refused = kstreams("consume", "orders", "--from-beginning", "--until-end", "--value", "avro")
    assert refused.status == 1
    assert "127.0.0.1:9 does not answer" in refused.err


def test_without_a_configured_registry_that_of_the_log_is_asked(kstreams):
    (kstreams.folder / "order.avsc").write_text(json.dumps(ORDER))
    kstreams.ok("schemas", "register", "orders-value", "order.avsc")
    kstreams.ok("topics", "create", "orders")
    kstreams.ok("produce", "orders", "--value", "avro", stdin=json.dumps(LINE) + "\n")
    assert consumed(kstreams) == [(None, LINE)]
    assert registry_of(Config.load().replace({"schema.registry.url": "local:"})).subjects() == ["orders-value"]


def test_without_any_registry_what_is_to_be_set_is_named():
    """On Kafka there is no embedded log that could have one."""
    with pytest.raises(SerdeError, match=r"schema\.registry\.url"):
        reader_of("value", "avro", None)


APP = """
from dataclasses import dataclass

import kstreams as ks

@dataclass(frozen=True)
class Order:
    id: int
    customer: str

@dataclass(frozen=True)
class Total:
    orders: int

topology = ks.StreamsBuilder()
orders = topology.stream("in", key=str, value=ks.Avro(Order))
by_customer = orders.group_by(lambda key, order: order.customer, key=ks.Avro('"string"'), value=ks.Protobuf(Order))
totals = by_customer.aggregate(
    lambda: Total(0), lambda key, order, total: Total(total.orders + 1), value=ks.JsonSchema(Total), materialized="sums"
)
totals.to_stream().to("totals", key=ks.Avro('"string"'), value=ks.JsonSchema(Total))
windows = by_customer.windowed_by(ks.TimeWindows(size=1000)).count("counts")
windows.to_stream().to("by-second", value=int)
"""


def test_topics_of_an_application_are_shown_by_what_their_settings_say(shell):
    (shell.folder / "counting.py").write_text(APP)
    (shell.folder / "in.avsc").write_text(
        '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},'
        ' {"name": "customer", "type": "string"}]}'
    )
    shell.ok("schemas", "register", "in-value", "in.avsc")
    shell.ok("topics", "create", "in")
    shell.ok(
        "produce", "in", "--json", "--value", "avro", stdin='{"value": {"id": 1, "customer": "c"}, "timestamp": 5}'
    )
    shell.ok("run", "counting.py", "--until-end")
    window = {"start_ms": 0, "end_ms": 1000}
    expected = {
        "totals": ("avro", "json-schema", "c", {"orders": 1}),
        "by-second": ("windowed(avro, 1000)", "int", {"key": "c", "window": window}, 1),
        "counting-sums-changelog": ("avro", "json-schema", "c", {"orders": 1}),
        "counting-counts-changelog": ("window-row(avro, 1000)", "int", {"key": "c", "window": window}, 1),
    }
    for topic, (key_type, value_type, key, value) in expected.items():
        (described,) = shell.ok("topics", "describe", topic, "--json").json_lines()
        assert (described["key_type"], described["value_type"]) == (key_type, value_type)
        (row,) = shell.ok("consume", topic, "--from-beginning", "--until-end", "--json").json_lines()
        assert (row["key"], row["value"]) == (key, value)
    repartitions = [name for name in shell.ok("topics", "list").out.split() if "repartition" in name]
    assert len(repartitions) == 2
    for topic in repartitions:
        (row,) = shell.ok("consume", topic, "--from-beginning", "--until-end", "--json").json_lines()
        assert (row["key"], row["value"]) == ("c", {"id": 1, "customer": "c"})


def test_stores_of_an_application_that_has_ended_are_read(shell):
    declared = APP.replace('materialized="sums"', 'materialized=ks.Materialized("sums", queryable=True)')
    (shell.folder / "counting.py").write_text(declared)
    (shell.folder / "in.avsc").write_text(
        '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},'
        ' {"name": "customer", "type": "string"}]}'
    )
    shell.ok("schemas", "register", "in-value", "in.avsc")
    shell.ok("topics", "create", "in")
    shell.ok(
        "produce", "in", "--json", "--value", "avro", stdin='{"value": {"id": 1, "customer": "c"}, "timestamp": 5}'
    )
    shell.ok("run", "counting.py", "--until-end")
    for at in (("--app", "counting.py"), ("--state-dir", ".kstreams/state", "--application-id", "counting")):
        for which in ("c", "--all"):
            (row,) = shell.ok("query", "sums", which, *at, "--json").json_lines()
            assert (row["key"], row["value"]) == ("c", {"orders": 1})
        assert shell.ok("query", "sums", "d", *at).out == ""
