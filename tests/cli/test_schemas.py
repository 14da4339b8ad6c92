"""`kstreams schemas` on a server and on the embedded log, and what `topics describe` says of schemas."""

from __future__ import annotations

import json

import pytest

from tests.support.schema_registry_server import RegistryServer

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
NOTED = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":"string"}]}'


@pytest.fixture(params=["local", "server"])
def shell(request, kstreams, monkeypatch):
    """Types commands where the configuration names a registry of one kind or the other."""
    (kstreams.folder / "order.avsc").write_text(ORDER)
    (kstreams.folder / "noted.avsc").write_text(NOTED)
    if request.param == "local":
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", "local:")
        yield kstreams
        return
    with RegistryServer() as server:
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", server.url)
        yield kstreams


def test_a_schema_is_registered_listed_and_shown(shell):
    (registered,) = shell.ok("schemas", "register", "orders-value", "order.avsc", "--json").json_lines()
    assert registered == {"subject": "orders-value", "version": 1, "id": 1, "type": "AVRO"}
    assert shell.ok("schemas", "list").out.splitlines() == [
        "subject\tversion\tid\ttype\tversions\tcompatibility",
        "orders-value\t1\t1\tAVRO\t1\tBACKWARD",
    ]
    assert json.loads(shell.ok("schemas", "show", "orders-value").out) == json.loads(ORDER)
    (shown,) = shell.ok("schemas", "show", "orders-value", "--json").json_lines()
    assert (shown["subject"], shown["version"], shown["id"], shown["type"]) == ("orders-value", 1, 1, "AVRO")
    assert json.loads(shell.ok("schemas", "show", "--id", "1").out) == json.loads(ORDER)
    assert json.loads(shell.ok("schemas", "show", "--guid", shown["guid"]).out) == json.loads(ORDER)


def test_a_schema_may_come_from_standard_input_and_refer_to_others(shell):
    shell.ok("schemas", "register", "order", "order.avsc")
    text = '{"type":"array","items":"Order"}'
    shell.ok(*("schemas", "register", "orders-value", "-", "--type", "avro", "--reference", "Order=order"), stdin=text)
    (shown,) = shell.ok("schemas", "show", "orders-value", "--json").json_lines()
    assert shown["references"] == [{"name": "Order", "subject": "order", "version": 1}]


def test_a_proto_file_is_shown_as_it_was_written(shell):
    text = 'syntax = "proto3";\n\n// An order.\nmessage Order {\n  int64 id = 1;\n}\n'
    (shell.folder / "order.proto").write_text(text)
    shell.ok("schemas", "register", "orders-value", "order.proto")
    assert shell.ok("schemas", "show", "orders-value").out == text


def test_a_version_or_a_subject_is_deleted(shell):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    shell.ok("schemas", "compatibility", "none", "--subject", "orders-value")
    shell.ok("schemas", "register", "orders-value", "noted.avsc")
    assert shell.ok("schemas", "delete", "orders-value", "--version", "1").err == "deleted version 1 of orders-value\n"
    assert [row["versions"] for row in shell.ok("schemas", "list", "--json").json_lines()] == [[2]]
    shell.ok("schemas", "delete", "orders-value", "--permanent")
    assert shell.ok("schemas", "list").out == ""
    refused = shell("schemas", "show", "orders-value")
    assert refused.status == 1
    assert "orders-value" in refused.err


def test_the_rule_of_compatibility_is_shown_and_set(shell):
    shell.ok("topics", "create", "orders")
    assert shell.ok("schemas", "compatibility").out == "BACKWARD\n"
    assert shell.ok("schemas", "compatibility", "FULL").out == "FULL\n"
    assert shell.ok("schemas", "compatibility", "NONE", "--subject", "orders-value").out == "NONE\n"
    assert shell.ok("schemas", "compatibility").out == "FULL\n"


def test_topics_describe_names_the_schemas_of_keys_and_values(shell):
    shell.ok("topics", "create", "orders")
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    (row,) = shell.ok("topics", "describe", "orders", "--json").json_lines()
    assert (row["key_schema"], row["value_schema"]) == (None, "orders-value version 1 (AVRO, id 1)")


def test_a_schema_that_breaks_the_rule_is_told_with_place_and_reason(kstreams):
    (kstreams.folder / "order.avsc").write_text(ORDER)
    (kstreams.folder / "noted.avsc").write_text(NOTED)
    kstreams.ok("schemas", "register", "orders-value", "order.avsc")
    checked = kstreams("schemas", "check", "orders-value", "noted.avsc", "--json")
    assert checked.status == 1
    reason = "cannot read version 1: Order.note: is read, but was not written, and has no default"
    assert checked.json_lines() == [{"subject": "orders-value", "reason": reason}]
    assert checked.err == "the schema is not compatible with orders-value (BACKWARD)\n"
    refused = kstreams("schemas", "register", "orders-value", "noted.avsc")
    assert refused.status == 1
    assert reason in refused.err
    fitting = kstreams.ok("schemas", "check", "orders-value", "order.avsc")
    assert (fitting.out, fitting.err) == ("", "the schema is compatible with orders-value (BACKWARD)\n")


def test_without_a_configuration_schemas_lie_in_the_embedded_log(kstreams):
    (kstreams.folder / "order.avsc").write_text(ORDER)
    kstreams.ok("topics", "create", "orders")
    assert "value_schema" not in kstreams.ok("topics", "describe", "orders", "--json").json_lines()[0]
    kstreams.ok("schemas", "register", "orders-value", "order.avsc")
    (row,) = kstreams.ok("topics", "describe", "orders", "--json").json_lines()
    assert row["value_schema"] == "orders-value version 1 (AVRO, id 1)"


def test_a_log_and_a_registry_can_be_named(kstreams):
    (kstreams.folder / "order.avsc").write_text(ORDER)
    kstreams.ok("schemas", "register", "orders-value", "order.avsc", "--log-dir", "other")
    assert len(kstreams.ok("schemas", "list", "--json", "--registry", "local:other").json_lines()) == 1
    mistyped = kstreams("schemas", "list", "--log-dir", "othr")
    assert mistyped.status == 1
    assert "no log in" in mistyped.err
    assert not (kstreams.folder / "othr").exists()


def test_topics_are_described_while_the_registry_is_away(kstreams, monkeypatch):
    kstreams.ok("topics", "create", "orders")
    with RegistryServer() as server:
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", server.url)
    monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_MAX_RETRIES", "0")
    described = kstreams.ok("topics", "describe", "orders", "--json")
    assert described.json_lines()[0]["value_schema"] is None
    assert f"{server.url} does not answer" in described.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("register", "orders-value", "order.txt"), "name it avro, protobuf or json"),
        (("register", "orders-value", "none.avsc"), "there is no file none.avsc"),
        (("register", "orders-value", "order.avsc", "--reference", "Item"), "is not NAME=SUBJECT"),
        (("show",), "name one of a subject, an id, or a GUID"),
        (("compatibility", "sideways"), "is no rule of compatibility"),
        (("list", "--registry", "localhost:8081"), "give URLs such as http://localhost:8081"),
    ],
)
def test_what_cannot_be_is_one_sentence(kstreams, arguments, message):
    kstreams.ok("topics", "create", "orders")
    (kstreams.folder / "order.avsc").write_text(ORDER)
    refused = kstreams("schemas", *arguments)
    assert refused.status in (1, 2)
    assert message in " ".join(refused.err.replace("│", " ").split())
