"""The schema registry in the embedded log: ids, forms of schemas, deletion, processes beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kstreams.config import Config
from kstreams.errors import RegistryError, SchemaNotFoundError
from kstreams.log import open_log, verify
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaRegistry, SchemaType
from tests.log.embedded.files import run, start

NUMBER = Schema('"int"')


def registry_in(folder: Path, url: str = "local:") -> SchemaRegistry:
    return registry_of(Config.of({"schema.registry.url": url, "log.dir": folder}))


def test_it_lies_in_the_log_that_is_named(tmp_path: Path) -> None:
    for registry, folder in (
        (registry_in(tmp_path / "a"), tmp_path / "a"),
        (registry_in(tmp_path / "a", f"local:{tmp_path / 'b'}"), tmp_path / "b"),
        (
            registry_of(Config.of({"schema.registry.url": "local:", "bootstrap.servers": f"log:{tmp_path / 'c'}"})),
            tmp_path / "c",
        ),
    ):
        registry.register("orders-value", NUMBER)
        registry.close()
        assert verify(folder) == []


def test_schemas_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with_schema = registry_in(tmp_path)
    first = with_schema.register("orders-value", NUMBER)
    with_schema.set_compatibility("NONE", "orders-value")
    with_schema.close()
    again = registry_in(tmp_path)
    assert again.version("orders-value") == first
    assert again.schema_of_guid(first.guid).id == first.id
    assert again.compatibility("orders-value") == "NONE"
    again.close()


def test_topics_and_schemas_are_used_at_once(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("orders")
        registry = registry_in(tmp_path)
        registry.register("orders-value", NUMBER)
        log.admin().create_topic("returns")
        registry.close()
    assert verify(tmp_path) == []


REGISTERS = """
import sys
from pathlib import Path
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema
registry = registry_of(Config.of({"schema.registry.url": "local:", "log.dir": Path(sys.argv[1])}))
registry.set_compatibility("NONE")
for size in range(1, 21):
    text = '{"type":"fixed","name":"F","size":%d}' % size
    print(registry.register("orders-value", Schema(text)).id)
registry.close()
"""


def test_processes_that_register_the_same_schemas_get_the_same_ids(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    processes = [start(REGISTERS, tmp_path) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert outputs[0] == outputs[1] == outputs[2]
    registry = registry_in(tmp_path)
    assert registry.versions("orders-value") == list(range(1, 21))
    assert sorted(map(int, outputs[0].split())) == list(range(1, 21))
    registry.close()
    assert verify(tmp_path) == []


def test_what_another_process_registers_is_seen(tmp_path: Path) -> None:
    registry = registry_in(tmp_path)
    with pytest.raises(SchemaNotFoundError):
        registry.schema(20)
    run(REGISTERS, tmp_path)
    assert registry.schema(20).schema.text == '{"type":"fixed","name":"F","size":20}'
    registry.close()


FORMS = {
    "attributes in another order": ('{"type":"fixed","name":"F","size":4}', '{"size":4,"name":"F","type":"fixed"}'),
    "a primitive type that is written out": ('"int"', '{"type":"int"}'),
    "white space": ('["null","int"]', ' [ "null",\n"int" ] '),
}
NORMAL_FORMS = {
    "a namespace in the name": (
        '{"type":"fixed","name":"a.F","size":4}',
        '{"type":"fixed","name":"F","namespace":"a","size":4}',
    ),
    "a namespace that is that of the type around": (
        '{"type":"record","name":"a.R","fields":[{"name":"f","type":{"type":"fixed","name":"F","size":4}}]}',
        '{"type":"record","name":"a.R","fields":[{"name":"f","type":{"type":"fixed","name":"a.F","size":4}}]}',
    ),
}


@pytest.mark.parametrize("what", FORMS)
def test_forms_that_are_one_schema(local: SchemaRegistry, what: str) -> None:
    one, other = FORMS[what]
    assert local.register("a-value", Schema(one)).id == local.register("b-value", Schema(other)).id
    assert local.lookup("a-value", Schema(other)).version == 1


@pytest.mark.parametrize("what", NORMAL_FORMS)
def test_forms_that_are_one_schema_when_they_are_normalized(local: SchemaRegistry, what: str) -> None:
    one, other = NORMAL_FORMS[what]
    registered = local.register("a-value", Schema(one))
    with pytest.raises(SchemaNotFoundError):
        local.lookup("a-value", Schema(other))
    assert local.lookup("a-value", Schema(other), normalize=True) == registered
    assert local.register("a-value", Schema(other), normalize=True) == registered
    assert local.register("b-value", Schema(other)).id != registered.id
    assert (
        local.register("c-value", Schema(one), normalize=True).id
        == local.register("d-value", Schema(other), normalize=True).id
    )


def test_the_order_of_attributes_in_a_json_schema_counts_unless_it_is_normalized(local: SchemaRegistry) -> None:
    one, other = (
        Schema(text, "JSON") for text in ('{"type":"string","minLength":1}', '{"minLength":1,"type":"string"}')
    )
    registered = local.register("a-value", one)
    with pytest.raises(SchemaNotFoundError):
        local.lookup("a-value", other)
    assert local.lookup("a-value", other, normalize=True) == registered


def test_comments_in_a_proto_file_are_kept_and_do_not_count(local: SchemaRegistry) -> None:
    text = 'syntax = "proto3";\n// An order.\nmessage Order { string note = 1; /* free text */ }'
    bare = 'syntax = "proto3"; message Order { string note = 1; }'
    first = local.register("orders-value", Schema(text, "PROTOBUF"))
    assert first.schema.text == text
    assert local.register("orders-value", Schema(bare, "PROTOBUF")) == first


def test_names_and_texts_that_differ_are_different_schemas(local: SchemaRegistry) -> None:
    local.set_compatibility("NONE")
    texts = [
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":1}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":2}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","doc":"An R.","fields":[{"name":"a","type":"int"}]}',
    ]
    found = [local.register("a-value", Schema(text)) for text in texts]
    assert [each.version for each in found] == [1, 2, 3, 4]
    assert len({each.guid for each in found}) == 4


def test_the_guid_is_the_same_in_every_log(tmp_path: Path) -> None:
    one, other = registry_in(tmp_path / "a"), registry_in(tmp_path / "b")
    other.register("before-value", Schema('"string"'))
    assert one.register("a-value", NUMBER).guid == other.register("b-value", NUMBER).guid
    for registry in (one, other):
        registry.close()


def test_only_what_is_deleted_is_deleted_permanently(local: SchemaRegistry) -> None:
    first = local.register("orders-value", NUMBER)
    with pytest.raises(RegistryError, match="delete it first"):
        local.delete("orders-value", 1, permanent=True)
    with pytest.raises(RegistryError, match="delete it first"):
        local.delete("orders-value", permanent=True)
    local.delete("orders-value", 1)
    assert local.schema(first.id).schema == NUMBER
    assert local.delete("orders-value", 1, permanent=True) == [1]
    with pytest.raises(SchemaNotFoundError):
        local.schema(first.id)
    with pytest.raises(SchemaNotFoundError):
        local.schema_of_guid(first.guid)


def test_an_id_that_another_subject_has_stays_known(local: SchemaRegistry) -> None:
    first = local.register("orders-value", NUMBER)
    local.register("returns-value", NUMBER)
    local.delete("orders-value")
    local.delete("orders-value", permanent=True)
    assert local.schema(first.id).schema == NUMBER


def test_neither_versions_nor_ids_are_given_again_after_permanent_deletion(local: SchemaRegistry) -> None:
    first = local.register("orders-value", NUMBER)
    local.delete("orders-value")
    local.delete("orders-value", permanent=True)
    again = local.register("orders-value", NUMBER)
    assert (again.version, again.id) == (2, first.id + 1)


def test_a_deleted_subject_loses_its_rule(local: SchemaRegistry) -> None:
    local.register("orders-value", NUMBER)
    local.set_compatibility("NONE", "orders-value")
    local.delete("orders-value")
    assert local.compatibility("orders-value") == "BACKWARD"


@pytest.mark.parametrize("subject", ["", "a" * 256, "a\0b", "a\nb", "\ud800"])
def test_what_is_no_name_of_a_subject_is_refused(local: SchemaRegistry, subject: str) -> None:
    with pytest.raises(RegistryError, match="1 to 255 characters"):
        local.register(subject, NUMBER)


def test_a_subject_that_is_mistyped_is_answered_with_the_nearest(local: SchemaRegistry) -> None:
    local.register("orders-value", NUMBER)
    with pytest.raises(SchemaNotFoundError, match="'orders-value'"):
        local.version("order-value")


def test_schemas_may_be_large(local: SchemaRegistry) -> None:
    fields = [{"name": f"field_{i}", "type": ["null", "string"], "doc": "x" * 200} for i in range(2_000)]
    text = json.dumps({"type": "record", "name": "Wide", "fields": fields})
    registered = local.register("wide-value", Schema(text))
    assert json.loads(local.schema(registered.id).schema.text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"type":"array","items":' * 3_000 + '"int"' + "}" * 3_000, "AVRO"),
        ('{"type":"array","items":' * 250 + '"int"' + "}" * 250, "AVRO"),
        ('{"items":' * 3_000 + "{}" + "}" * 3_000, "JSON"),
        ('{"type":"enum","name":"E","symbols":["A"],"doc":"\\ud800"}', "AVRO"),
        ('{"title":"\\ud800"}', "JSON"),
        ('syntax = "proto3"; message A { string \ud800 = 1; }', "PROTOBUF"),
    ],
)
def test_strange_schemas_are_taken_or_refused_in_a_sentence(local: SchemaRegistry, text: str, kind: SchemaType) -> None:
    try:
        registered = local.register("strange-value", Schema(text, kind))
    except RegistryError:
        assert local.subjects() == []
    else:
        assert local.schema(registered.id).id == registered.id
