"""`kstreams check` asks the registry whether it would take what an application writes with."""

from __future__ import annotations

import pytest

from tests.support.schema_registry_server import RegistryServer

APP = """
from dataclasses import dataclass

import kstreams as ks

@dataclass(frozen=True)
class Order:
    id: int
{field}

topology = ks.StreamsBuilder()
orders = topology.stream("in", key=str, value=ks.Avro(Order{reading}))
orders.filter(ks.col("id") > 0).to("orders", key=str, value=ks.Avro(Order, name="Order"{writing}))
"""


@pytest.fixture(params=["local", "server"])
def shell(request, kstreams, monkeypatch):
    """Types commands where the configuration names a registry of one kind or the other."""
    (kstreams.folder / "order.avsc").write_text(
        '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
    )
    if request.param == "local":
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", "local:")
        yield kstreams
        return
    with RegistryServer() as server:
        monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", server.url)
        yield kstreams


@pytest.fixture
def local(kstreams, monkeypatch):
    """The server for tests takes every schema: what is refused is tested on a registry with rules."""
    monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", "local:")
    (kstreams.folder / "order.avsc").write_text(
        '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
    )
    kstreams.ok("schemas", "register", "orders-value", "order.avsc")
    return kstreams


def app(shell, name: str = "app.py", field: str = "", reading: str = "", writing: str = "") -> str:
    (shell.folder / name).write_text(APP.format(field=field, reading=reading, writing=writing))
    return name


def test_a_schema_that_is_there_needs_nothing(shell):
    shell.ok("schemas", "register", "orders-value", "order.avsc")
    outcome = shell.ok("check", app(shell))
    assert outcome.out == ""
    assert "the registry takes the schemas" in outcome.err
    assert shell.ok("schemas", "list", "--json").json_lines()[0]["versions"] == [1]


def test_a_schema_that_will_be_a_new_version_is_told(shell):
    (row,) = shell.ok("check", app(shell), "--json").json_lines()
    assert row == {"state": "goes on", "change": "the values of orders get a new version of orders-value"}
    assert shell.ok("schemas", "list").out == "", "nothing is registered"


def test_a_schema_that_is_compatible_is_status_0(local):
    outcome = local.ok("check", app(local, field='    note: str = ""'))
    assert "goes on\tthe values of orders get a new version of orders-value" in outcome.out


def test_a_schema_that_is_not_compatible_is_status_1_and_the_reason_is_named(local):
    outcome = local("check", app(local, field="    note: str"))
    assert outcome.status == 1
    assert "refused\tthe values of orders cannot be written with orders-value: cannot read version 1" in outcome.out
    assert "Order.note: is read, but was not written, and has no default" in outcome.out
    assert "the registry does not take the schemas" in outcome.err


def test_the_rule_of_the_subject_counts(local):
    name = app(local, field='    note: str = ""')
    local.ok("schemas", "compatibility", "FORWARD", "--subject", "orders-value")
    local.ok("check", name)
    name = app(local, field="    note: str")
    local.ok("check", name)
    local.ok("schemas", "compatibility", "NONE", "--subject", "orders-value")
    local.ok("check", name)


def test_of_two_versions_state_and_schemas_are_shown(local):
    before, after = app(local, "before.py"), app(local, "after.py", field="    note: str")
    outcome = local("check", before, after)
    assert outcome.status == 1
    assert "the state can be kept" in outcome.err
    assert "the registry does not take the schemas" in outcome.err


def test_what_may_not_be_registered_must_be_there(local):
    outcome = local("check", app(local, field="    note: str", writing=", auto_register=False"))
    assert outcome.status == 1
    assert "auto.register.schemas is false" in outcome.out
    local.ok("check", app(local, writing=", auto_register=False"))


def test_what_is_written_with_the_newest_version_must_fit_it(local):
    local.ok("check", app(local, writing=", use_latest_version=True"))
    outcome = local("check", app(local, field="    note: str", writing=', use_latest_version=True, subject="topic"'))
    assert outcome.status == 0, "the newest version leaves out what it has not"
    (local.folder / "noted.avsc").write_text(
        '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},'
        '{"name": "more", "type": "string"}]}'
    )
    local.ok("schemas", "compatibility", "NONE", "--subject", "orders-value")
    local.ok("schemas", "register", "orders-value", "noted.avsc")
    outcome = local("check", app(local, writing=", use_latest_version=True"))
    assert outcome.status == 1
    assert "latest.compatibility.strict=false" in outcome.out


def test_a_windowed_key_has_a_schema_too(local):
    (local.folder / "app.py").write_text("""
import kstreams as ks

topology = ks.StreamsBuilder()
words = topology.stream("words", key=ks.Avro('"string"'), value=str)
counts = words.group_by_key().windowed_by(ks.TimeWindows(size=1000)).count("counts")
counts.to_stream().to("counts", key=ks.serdes.TimeWindowedSerde(ks.Avro('"string"'), 1000), value=int)
""")
    outcome = local.ok("check", "app.py")
    assert "the keys of counts get a new version of counts-key" in outcome.out


def test_without_schemas_it_says_what_it_is_for(kstreams):
    (kstreams.folder / "app.py").write_text(
        'import kstreams as ks\ntopology = ks.StreamsBuilder()\ntopology.stream("a", key=str, value=str).to("b")\n'
    )
    assert "nothing is written with a schema in a registry" in kstreams.ok("check", "app.py").err


def test_a_registry_that_is_away_is_named(kstreams, monkeypatch):
    monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("KSTREAMS_SCHEMA_REGISTRY_MAX_RETRIES", "0")
    outcome = kstreams("check", app(kstreams))
    assert outcome.status == 1
    assert "127.0.0.1:9 does not answer" in outcome.err
