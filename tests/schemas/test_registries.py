"""What holds of every schema registry: a server, and the embedded log."""

from __future__ import annotations

import json

import pytest

from kstreams.errors import RegistryError, SchemaNotFoundError
from kstreams.schemas import Schema, SchemaReference, SchemaRegistry

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":"string","default":""}]}'
)
ITEM = '{"type":"record","name":"Item","fields":[]}'
MESSAGE = 'syntax = "proto3";\nmessage Order { int64 id = 1; }\n'


def test_a_schema_gets_an_id_a_guid_and_the_first_version(registry: SchemaRegistry) -> None:
    first = registry.register("orders-value", Schema(ORDER))
    assert (first.id, first.subject, first.version) == (1, "orders-value", 1)
    assert len(first.guid) == 36
    assert json.loads(first.schema.text) == json.loads(ORDER)


def test_the_next_schema_is_the_next_version(registry: SchemaRegistry) -> None:
    first = registry.register("orders-value", Schema(ORDER))
    second = registry.register("orders-value", Schema(ORDER_2))
    assert (second.id, second.version) == (2, 2)
    assert registry.versions("orders-value") == [1, 2]
    assert registry.version("orders-value").id == second.id
    assert registry.version("orders-value", 1).id == first.id


def test_a_schema_is_registered_once_however_it_is_laid_out(registry: SchemaRegistry) -> None:
    first = registry.register("orders-value", Schema(ORDER))
    again = registry.register("orders-value", Schema(json.dumps(json.loads(ORDER), indent=2)))
    assert (again.id, again.version) == (first.id, first.version)
    assert registry.versions("orders-value") == [1]


def test_a_schema_has_one_id_and_one_guid_in_all_subjects(registry: SchemaRegistry) -> None:
    one, other = (registry.register(f"{topic}-value", Schema(ORDER)) for topic in ("orders", "returns"))
    assert (one.id, one.guid) == (other.id, other.guid)
    assert registry.subjects() == ["orders-value", "returns-value"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [("AVRO", ORDER), ("JSON", '{"type":"object","properties":{"id":{"type":"integer"}}}'), ("PROTOBUF", MESSAGE)],
)
def test_a_schema_of_every_type_comes_back_by_id_and_by_guid(registry: SchemaRegistry, kind: str, text: str) -> None:
    schema = Schema(text, kind)  # type: ignore[arg-type]
    registered = registry.register("orders-value", schema)
    for found in (registry.schema(registered.id), registry.schema_of_guid(registered.guid)):
        assert (found.schema.type, found.schema.text.strip()) == (kind, text.strip())
    assert registry.schema(registered.id).id == registered.id
    assert registry.schema_of_guid(registered.guid).guid == registered.guid


def test_a_schema_is_looked_up_without_registering_it(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(ORDER))
    second = registry.register("orders-value", Schema(ORDER_2))
    found = registry.lookup("orders-value", Schema(ORDER_2))
    assert (found.id, found.guid, found.version) == (second.id, second.guid, 2)
    with pytest.raises(SchemaNotFoundError, match="orders-value"):
        registry.lookup("orders-value", Schema('"string"'))
    with pytest.raises(SchemaNotFoundError, match="elsewhere-value"):
        registry.lookup("elsewhere-value", Schema(ORDER))


def test_what_is_not_there_is_an_error_that_names_it(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(ORDER))
    with pytest.raises(SchemaNotFoundError, match="id 99"):
        registry.schema(99)
    with pytest.raises(SchemaNotFoundError, match="dead-beef"):
        registry.schema_of_guid("dead-beef")
    with pytest.raises(SchemaNotFoundError, match="'order-value'"):
        registry.version("order-value")
    with pytest.raises(SchemaNotFoundError, match="version 7"):
        registry.version("orders-value", 7)
    with pytest.raises(SchemaNotFoundError, match="'order-value'"):
        registry.versions("order-value")


def test_a_schema_may_refer_to_a_version_of_another_subject(registry: SchemaRegistry) -> None:
    item = registry.register("item", Schema(ITEM))
    references = (SchemaReference("Item", "item", item.version),)
    orders = registry.register("orders-value", Schema('{"type":"array","items":"Item"}', references=references))
    assert registry.schema(orders.id).schema.references == references
    assert registry.version("orders-value").schema.references == references


def test_a_reference_that_leads_nowhere_is_refused(registry: SchemaRegistry) -> None:
    references = (SchemaReference("Item", "item", 3),)
    with pytest.raises(RegistryError, match="item"):
        registry.register("orders-value", Schema('{"type":"array","items":"Item"}', references=references))


def test_what_others_refer_to_is_not_deleted(registry: SchemaRegistry) -> None:
    registry.register("item", Schema(ITEM))
    registry.register(
        "orders-value", Schema('{"type":"array","items":"Item"}', references=(SchemaReference("Item", "item", 1),))
    )
    with pytest.raises(RegistryError, match="refer"):
        registry.delete("item")
    assert registry.delete("orders-value") == [1]
    assert registry.delete("item") == [1]


def test_a_text_that_is_no_schema_is_refused(registry: SchemaRegistry) -> None:
    with pytest.raises(RegistryError, match="schema"):
        registry.register("orders-value", Schema("{"))
    assert registry.subjects() == []


def test_rules_of_compatibility_are_of_a_subject_or_of_all(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(ORDER))
    assert registry.compatibility() == "BACKWARD"
    assert registry.compatibility("orders-value") == "BACKWARD"
    registry.set_compatibility("full_transitive", "orders-value")
    assert registry.compatibility("orders-value") == "FULL_TRANSITIVE"
    assert registry.compatibility() == "BACKWARD"
    registry.set_compatibility("NONE")
    assert registry.compatibility("other-value") == "NONE"
    assert registry.compatibility("orders-value") == "FULL_TRANSITIVE"


def test_a_schema_that_fits_has_no_incompatibilities(registry: SchemaRegistry) -> None:
    assert registry.incompatibilities("orders-value", Schema(ORDER)) == []
    registry.register("orders-value", Schema(ORDER))
    assert registry.incompatibilities("orders-value", Schema(ORDER_2)) == []


def test_a_version_that_is_deleted_is_no_version_but_its_id_is_known(registry: SchemaRegistry) -> None:
    first = registry.register("orders-value", Schema(ORDER))
    registry.register("orders-value", Schema(ORDER_2))
    assert registry.delete("orders-value", 1) == [1]
    assert registry.versions("orders-value") == [2]
    with pytest.raises(SchemaNotFoundError):
        registry.version("orders-value", 1)
    assert json.loads(registry.schema(first.id).schema.text) == json.loads(ORDER)


def test_the_number_of_a_deleted_version_is_not_given_again(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(ORDER))
    second = registry.register("orders-value", Schema(ORDER_2))
    registry.delete("orders-value", 2)
    assert registry.version("orders-value").version == 1
    again = registry.register("orders-value", Schema(ORDER_2))
    assert (again.version, again.id) == (3, second.id)


def test_a_subject_is_deleted_with_all_its_versions_and_then_permanently(registry: SchemaRegistry) -> None:
    registry.register("orders-value", Schema(ORDER))
    registry.register("orders-value", Schema(ORDER_2))
    assert registry.delete("orders-value") == [1, 2]
    assert registry.subjects() == []
    assert registry.delete("orders-value", permanent=True) == [1, 2]
    with pytest.raises(SchemaNotFoundError):
        registry.delete("orders-value", permanent=True)
    with pytest.raises(SchemaNotFoundError):
        registry.delete("orders-value")


def test_subjects_may_have_any_characters(registry: SchemaRegistry) -> None:
    subject = "com.example/Größe & co?"
    registry.register(subject, Schema(ORDER))
    assert registry.subjects() == [subject]
    assert registry.version(subject).subject == subject
