"""Which JSON Schemas read which: pairs by the rules that Confluent documents, and random ones by jsonschema itself."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft7Validator

from kstreams.errors import RegistryError
from kstreams.schemas.compatibility.rules import incompatibilities
from kstreams.schemas.references import ResolvedSchema

TEXT, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
CLOSED: dict[str, Any] = {"additionalProperties": False}


def obj(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def arr(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def reasons(reader: Any, writer: Any) -> list[str]:
    texts = (ResolvedSchema(json.dumps(each), "JSON") for each in (reader, writer))
    return [str(each) for each in incompatibilities(*texts)]


NODE = {"$ref": "#/definitions/node", "definitions": {"node": obj({"next": {"$ref": "#/definitions/node"}})}}

READS = {
    "the same": (obj({"a": TEXT}), obj({"a": TEXT})),
    "anything": (True, TEXT),
    "other titles, descriptions and defaults": ({**TEXT, "title": "A", "default": "x"}, {**TEXT, "title": "B"}),
    "integer as number": (NUMBER, INTEGER),
    "a type more": ({"type": ["string", "null"]}, TEXT),
    "no type": ({}, TEXT),
    "a greater maximum": ({**NUMBER, "maximum": 5}, {**NUMBER, "maximum": 4}),
    "no maximum": (NUMBER, {**NUMBER, "maximum": 4}),
    "a smaller minimum": ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 2}),
    "a greater length": ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 4}),
    "a smaller least length": ({**TEXT, "minLength": 0}, TEXT),
    "no pattern": (TEXT, {**TEXT, "pattern": "a"}),
    "a divisor": ({**NUMBER, "multipleOf": 2}, {**NUMBER, "multipleOf": 4}),
    "an enum with a value more": ({"enum": ["a", "b"]}, {"enum": ["a"]}),
    "an enum with its constant": ({"enum": ["a", "b"]}, {"const": "a"}),
    "no enum": (TEXT, {"type": "string", "enum": ["a"]}),
    "a property that is gone where others may be": (obj({}), obj({"a": TEXT})),
    "a property more where no others may be": (obj({"a": TEXT}, **CLOSED), obj({}, **CLOSED)),
    "a property of any value more": (obj({"a": {}}), obj({})),
    "a property more that others were like": (
        obj({"a": TEXT}, additionalProperties=TEXT),
        obj({}, additionalProperties=TEXT),
    ),
    "a property of a pattern": (
        obj({"a": TEXT}, patternProperties={"^a": TEXT}),
        obj({}, patternProperties={"^a": TEXT}),
    ),
    "other properties": (obj({}), obj({}, **CLOSED)),
    "a required property less": (obj({"a": TEXT}), obj({"a": TEXT}, required=["a"])),
    "a required property more with a default": (
        obj({"a": {**TEXT, "default": ""}}, required=["a"], **CLOSED),
        obj({}, **CLOSED),
    ),
    "more properties": (obj({}, maxProperties=5), obj({}, maxProperties=4)),
    "items of a wider type": (arr(NUMBER), arr(INTEGER)),
    "an item more in a tuple": (
        arr([TEXT, TEXT], additionalItems=False),
        arr([TEXT], additionalItems=False),
    ),
    "items that are not unique": (arr(TEXT), arr(TEXT, uniqueItems=True)),
    "a type as one of several": ({"oneOf": [{"type": "null"}, TEXT]}, TEXT),
    "several with one more": ({"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT]}),
    "one of several as their union": ({"type": ["string", "number"]}, {"oneOf": [TEXT, INTEGER]}),
    "all of several with one less": ({"allOf": [TEXT]}, {"allOf": [TEXT, {"maxLength": 5}]}),
    "a part of what all of several need": (
        obj({"a": TEXT}, required=["a"]),
        {"allOf": [obj({"a": TEXT}, required=["a"]), obj({"b": TEXT})]},
    ),
    "a smaller `not`": ({"not": INTEGER}, {"not": NUMBER}),
    "a type that refers to itself": (NODE, NODE),
    "a dependency less": (obj({}), obj({}, dependencies={"a": ["b"]})),
    "a narrower dependency": (
        obj({}, dependentRequired={"a": ["b"]}),
        obj({}, dependentRequired={"a": ["b", "c"]}),
    ),
}

DOES_NOT_READ = {
    "number as integer": (INTEGER, NUMBER, "(root): may be number, which is not read any more"),
    "a type less": (TEXT, {"type": ["string", "null"]}, "(root): may be null, which is not read any more"),
    "a smaller maximum": ({**NUMBER, "maximum": 4}, {**NUMBER, "maximum": 5}, "(root): maximum was 5 and is 4"),
    "a new maximum": ({**NUMBER, "maximum": 4}, NUMBER, "(root): maximum was not set and is 4"),
    "a greater minimum": ({**NUMBER, "minimum": 2}, {**NUMBER, "minimum": 1}, "(root): minimum was 1 and is 2"),
    "a new minimum below zero": ({**NUMBER, "minimum": -2}, NUMBER, "(root): minimum was not set and is -2"),
    "a smaller length": ({**TEXT, "maxLength": 4}, {**TEXT, "maxLength": 5}, "(root): maxLength was 5 and is 4"),
    "a new least length": ({**TEXT, "minLength": 1}, TEXT, "(root): minLength was not set and is 1"),
    "another pattern": (
        {**TEXT, "pattern": "a"},
        {**TEXT, "pattern": "b"},
        '(root): pattern was "b" and is "a"',
    ),
    "another divisor": (
        {**NUMBER, "multipleOf": 4},
        {**NUMBER, "multipleOf": 2},
        "(root): multipleOf was 2 and is 4",
    ),
    "an enum with a value less": (
        {"enum": ["a"]},
        {"enum": ["a", "b"]},
        '(root): may be "b", which is not read any more',
    ),
    "a new enum": (
        {"type": "string", "enum": ["a"]},
        TEXT,
        "(root): may be any value, and is read only as one of a few",
    ),
    "a property more where others may be": (
        obj({"a": TEXT}),
        obj({}),
        "a: may be array or boolean or null or number or object, which is not read any more",
    ),
    "a property that is gone where no others may be": (
        obj({}, **CLOSED),
        obj({"a": TEXT}, **CLOSED),
        "a: may be there, and is not read any more",
    ),
    "no other properties": (obj({}, **CLOSED), obj({}), "*: may be there, and is not read any more"),
    "a required property more": (
        obj({"a": TEXT}, required=["a"], **CLOSED),
        obj({}, **CLOSED),
        "a: is required, was not, and has no default",
    ),
    "a property within a property": (
        obj({"a": obj({"b": TEXT})}),
        obj({"a": obj({"b": NUMBER})}),
        "a.b: may be number, which is not read any more",
    ),
    "items of a narrower type": (arr(INTEGER), arr(NUMBER), "[]: may be number, which is not read any more"),
    "items of an array of objects": (
        arr(obj({"a": INTEGER})),
        arr(obj({"a": TEXT})),
        "[].a: may be string, which is not read any more",
    ),
    "unique items": (
        arr(TEXT, uniqueItems=True),
        arr(TEXT),
        "(root): may hold an item twice, which is not read any more",
    ),
    "an item less in a tuple": (
        arr([TEXT], additionalItems=False),
        arr([TEXT, TEXT], additionalItems=False),
        "[1]: may be there, and is not read any more",
    ),
    "one of several as one of them": (
        TEXT,
        {"oneOf": [TEXT, NUMBER]},
        "(root): may be number, which is not read any more",
    ),
    "several with one less": (
        {"oneOf": [TEXT, {"type": "null"}]},
        {"oneOf": [TEXT, NUMBER]},
        "(root): number is read as none of the 2 schemas of oneOf",
    ),
    "all of several with one more": (
        {"allOf": [TEXT, {"maxLength": 5}]},
        {"allOf": [TEXT]},
        "(root): maxLength was not set and is 5",
    ),
    "a new `not`": ({"not": INTEGER}, {}, "(root): `not` excludes what was valid before"),
    "a greater `not`": ({"not": NUMBER}, {"not": INTEGER}, "(root): `not` excludes what was valid before"),
    "a new dependency": (
        obj({}, dependencies={"a": ["b"]}),
        obj({}),
        "a: needs b beside it, and did not before",
    ),
    "what is not compared": (
        {**TEXT, "if": {"minLength": 2}, "then": {"pattern": "a"}},
        {**TEXT, "if": {"minLength": 3}, "then": {"pattern": "a"}},
        '(root): if was {"minLength": 3} and is {"minLength": 2}',
    ),
}


@pytest.mark.parametrize("what", READS)
def test_what_can_be_read(what: str) -> None:
    reader, writer = READS[what]
    assert reasons(reader, writer) == []


@pytest.mark.parametrize("what", DOES_NOT_READ)
def test_what_cannot_be_read_is_said_with_its_place(what: str) -> None:
    reader, writer, reason = DOES_NOT_READ[what]
    assert reasons(reader, writer) == [reason]


def test_references_to_other_schemas_are_followed() -> None:
    text = json.dumps(obj({"item": {"$ref": "item.json#/definitions/Item"}}))
    old, new = (
        ResolvedSchema(text, "JSON", (("item.json", json.dumps({"definitions": {"Item": kind}})),))
        for kind in (NUMBER, INTEGER)
    )
    assert [str(each) for each in incompatibilities(new, old)] == ["item: may be number, which is not read any more"]
    assert incompatibilities(old, new) == []
    lonely = ResolvedSchema(text, "JSON")
    with pytest.raises(RegistryError, match=r"item\.json"):
        incompatibilities(lonely, lonely)


@pytest.mark.parametrize("text", ["", "{", '{"type":"text"}', '{"$ref":"#/nowhere"}', '{"$ref":"#"}'])
def test_what_is_no_schema_is_said(text: str) -> None:
    with pytest.raises(RegistryError, match="this is no JSON Schema"):
        incompatibilities(ResolvedSchema(text, "JSON"), ResolvedSchema(text, "JSON"))


class Schemas:
    """Random schemas and random values, with few names and numbers, so that they meet."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schema(self, depth: int = 2) -> Any:
        makers = [self._text, self._number, self._enum, lambda: True]
        if depth:
            makers += [lambda: self._object(depth), lambda: self._array(depth), lambda: self._union(depth)]
        return self._random.choice(makers)()

    def value(self, depth: int = 2) -> Any:
        simple = [None, True, "", "a", "aaa", 0, 1, 2, 2.5, 6]
        if depth == 0 or self._random.random() < 0.4:
            return self._random.choice(simple)
        if self._random.random() < 0.5:
            return [self.value(depth - 1) for _ in range(self._random.randint(0, 3))]
        return {name: self.value(depth - 1) for name in "abc" if self._random.random() < 0.5}

    def _maybe(self, **keywords: Any) -> dict[str, Any]:
        return {name: value for name, value in keywords.items() if self._random.random() < 0.3}

    def _text(self) -> Any:
        return {**TEXT, **self._maybe(minLength=1, maxLength=2, pattern="a")}

    def _number(self) -> Any:
        kind = self._random.choice(["number", "integer", ["integer", "null"]])
        return {"type": kind, **self._maybe(minimum=1, maximum=5, exclusiveMaximum=6, multipleOf=2)}

    def _enum(self) -> Any:
        return {"enum": self._random.sample(["a", "aaa", 1, 2, None], self._random.randint(1, 4))}

    def _object(self, depth: int) -> Any:
        names = [name for name in "abc" if self._random.random() < 0.6]
        return obj(
            {name: self.schema(depth - 1) for name in names},
            **self._maybe(required=names[:1], additionalProperties=False, maxProperties=2, minProperties=1),
        )

    def _array(self, depth: int) -> Any:
        return arr(self.schema(depth - 1), **self._maybe(minItems=1, maxItems=2, uniqueItems=True))

    def _union(self, depth: int) -> Any:
        return {self._random.choice(["anyOf", "allOf"]): [self.schema(depth - 1) for _ in range(2)]}


def test_what_was_valid_is_valid_by_every_compatible_schema() -> None:
    schemas, compared = Schemas(36), 0
    values = [schemas.value() for _ in range(300)]
    for _ in range(4_000):
        reader, writer = schemas.schema(), schemas.schema()
        if reasons(reader, writer):
            continue
        read, written = Draft7Validator(reader), Draft7Validator(writer)
        for value in values:
            if written.is_valid(value):
                compared += 1
                assert read.is_valid(value), (reader, writer, value)
    assert compared > 10_000
