"""`validator_of`: a check of JSON against a schema, made once; by the package jsonschema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from kstreams.decoders import decode_json
from kstreams.errors import SerdeError
from kstreams.schemas import Schema, SchemaRegistry
from kstreams.serdes.base import decode_error

Check: TypeAlias = Callable[[bytes], None]
"""Raises SerdeError for JSON that is not of the schema."""


def validator_of(schema: Schema, registry: SchemaRegistry) -> Check:
    """The check of a schema; what it refers to, the registry has.

    Raises
    ------
    SerdeError
        When it is no JSON Schema, or jsonschema is not installed.
    """
    try:
        import jsonschema
        from referencing.exceptions import Unresolvable
    except ImportError as error:
        raise SerdeError(
            "validation needs jsonschema: install it with `pip install 'kstreams-dsl[registry]'`, or set validate=False"
        ) from error
    contents = parsed(schema.text)
    cls = jsonschema.validators.validator_for(contents)
    try:
        cls.check_schema(contents)
    except jsonschema.SchemaError as error:
        raise SerdeError(f"the schema is no JSON Schema: {error.message} at {error.json_path}") from error
    validator = cls(contents, registry=_resources(schema, registry))
    unanswerable = (ValueError, ArithmeticError, RecursionError, Unresolvable)  # a DecodeError is a ValueError
    best_match = jsonschema.exceptions.best_match

    def check(data: bytes) -> None:
        try:
            error = best_match(validator.iter_errors(decode_json(data)))
        except unanswerable as cause:
            raise decode_error("JSON of its schema", data, cause) from cause
        if error is not None:
            raise SerdeError(f"{data[:40]!r} does not fit its JSON Schema: {error.message} at {error.json_path}")

    return check


def parsed(text: str) -> Any:
    """What the text of a schema says; raises SerdeError where it is no JSON."""
    try:
        return decode_json(text)
    except msgspec.DecodeError as error:
        raise SerdeError(f"the schema is no JSON: {error}") from error


def _resources(schema: Schema, registry: SchemaRegistry) -> Any:
    """What a schema may refer to; nothing is fetched from elsewhere."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resources: Any = Registry()
    for name, text in _referenced(schema, registry):
        resources = resources.with_resource(name, DRAFT202012.create_resource(parsed(text)))
    return resources


def _referenced(schema: Schema, registry: SchemaRegistry) -> Iterator[tuple[str, str]]:
    for reference in schema.references:
        imported = registry.version(reference.subject, reference.version).schema
        yield reference.name, imported.text
        yield from _referenced(imported, registry)
