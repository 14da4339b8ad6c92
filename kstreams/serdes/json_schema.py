"""`JsonSchema`: keys and values as JSON, with their schemas in a registry."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import decode_json, type_info
from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.of_type import json_serde
from kstreams.serdes.pydantic_models import PydanticSerde
from kstreams.serdes.schemas import SchemaOptions, SchemaReader, SchemaSerde, SchemaWriter

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS = "#/$defs/"


def derived_schema(serde: Serde) -> dict[str, Any]:
    """Return the schema of the values of a JSON serde. Its title is the name of the class.

    Parameters
    ----------
    serde : Serde
        Serde of the class.

    Raises
    ------
    SerdeError
        If a type inside the class has no JSON Schema.

    Examples
    --------
    >>> from kstreams.serdes import JsonSerde
    >>> class Order(msgspec.Struct):
    ...     id: int
    >>> derived_schema(JsonSerde(Order))["properties"]
    {'id': {'type': 'integer'}}
    """
    if isinstance(serde, PydanticSerde):
        schema = sys.modules["pydantic"].TypeAdapter(serde.type).json_schema()
    else:
        schema = _of_msgspec(serde.type)
    title = getattr(serde.type, "__name__", None)
    named = {"title": title, **schema} if title else schema
    return {"$schema": _DIALECT, **named}


def _of_msgspec(kind: object) -> dict[str, object]:
    """Return the schema of a class with its fields at the top level, where msgspec has a reference to a definition."""
    type_info(kind)  # msgspec must inspect a type in one thread at a time
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise SerdeError(f"{kind!r} has no JSON Schema: {error}") from error
    definitions: dict[str, Any] = schema.get("$defs", {})
    name = schema.get("$ref", "").removeprefix(_DEFINITIONS)
    if name not in definitions:
        return schema
    other_definitions = {other: definition for other, definition in definitions.items() if other != name}
    is_recursive = f'"{_DEFINITIONS}{name}"'.encode() in msgspec.json.encode(definitions)
    needed = definitions if is_recursive else other_definitions
    return {**definitions[name], **({"$defs": needed} if needed else {})}


Check: TypeAlias = Callable[[bytes], None]
"""Raises SerdeError for JSON that is not valid."""


def validator_of(schema: Schema, registry: SchemaRegistry) -> Check:
    """Return a function that validates JSON against a schema. References are resolved by the registry.

    Raises
    ------
    SerdeError
        If the text is not a JSON Schema, or jsonschema is not installed.
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


def parsed(text: str) -> object:
    """Parse the text of a schema. Raises SerdeError if it is not JSON."""
    try:
        return decode_json(text)
    except msgspec.DecodeError as error:
        raise SerdeError(f"the schema is no JSON: {error}") from error


def _resources(schema: Schema, registry: SchemaRegistry) -> object:
    """Return the resources that a schema may refer to. Nothing is fetched from other places."""
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


class JsonSchema(SchemaSerde):
    """JSON preceded by the id of its schema, as Confluent's serializers write it.

    Parameters
    ----------
    kind : type or str or Path, optional
        A dataclass, msgspec Struct, TypedDict or pydantic model, from which the schema is derived; or the text of a
        schema, or the path of a file with one (`"order.json"`): values are dicts then. Without it, any JSON is read.
    type : type, optional
        The class of the values, if `kind` is a schema.
    validate : bool, optional
        True to validate records with the package jsonschema when they are read and written, which takes 20 microseconds
        or more per record. Default: True if `kind` is a schema. The fields of a class are checked by their types.
    subject : str or callable, optional
        The subject of the schema: `"topic"`, `"record"`, `"topic-record"`, or a function
        `(topic, is_key, title of the schema) -> subject`. Default: `value.subject.name.strategy`.
    auto_register, use_latest_version, normalize : bool, optional
        Default: the settings `auto.register.schemas`, `use.latest.version` and `normalize.schemas`.
    use_schema_id : int, optional
        The id of the schema to write with. Default: `use.schema.id`.
    strict : bool, default True
        True to refuse `use_latest_version` and `use_schema_id` for a schema that cannot read values of this one.
    schema_id : {"prefix", "header"}, optional
        `"prefix"` for an id before the bytes, `"header"` for a GUID in a header. Default: `value.schema.id.serializer`.
    references : sequence of SchemaReference
        Schemas of other subjects that the schema refers to, by the URL in its `$ref`.

    Raises
    ------
    SerdeError
        If a file cannot be read.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import kstreams as ks
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     id: int
    ...     coupon: str | None = None
    >>> topology = ks.StreamsBuilder()
    >>> orders = topology.stream("orders", key=str, value=ks.JsonSchema(Order))
    """

    schema_type = "JSON"

    def __init__(
        self,
        kind: Any = None,
        *,
        type: Any = None,
        validate: bool | None = None,
        subject: str | Callable[[str, bool, str], str] | None = None,
        auto_register: bool | None = None,
        use_latest_version: bool | None = None,
        use_schema_id: int | None = None,
        normalize: bool | None = None,
        strict: bool = True,
        schema_id: str | None = None,
        references: Sequence[SchemaReference] = (),
    ) -> None:
        options = SchemaOptions(
            subject=subject,
            auto_register=auto_register,
            use_latest_version=use_latest_version,
            use_schema_id=use_schema_id,
            normalize=normalize,
            strict=strict,
            schema_id=schema_id,
            references=tuple(references),
        )
        super().__init__(options)
        is_schema = isinstance(kind, str | PathLike)
        if type is not None and not is_schema:
            raise SerdeError("type= is the class of the values beside a schema: give the schema, or its file, first")
        self.type = type if is_schema else kind
        self._text = _text_of(kind) if is_schema else None
        self._validates = is_schema if validate is None else validate

    @cached_property
    def _json(self) -> Serde:
        return json_serde(Any if self.type is None else self.type)

    def declared_schema(self) -> Schema | None:
        if self._text is not None:
            return Schema(self._text, "JSON", self.options.references)
        if self.type is None:
            return None
        return Schema(msgspec.json.encode(derived_schema(self._json)).decode(), "JSON", self.options.references)

    def record_name(self, schema: Schema) -> str:
        return _title(schema.text)

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        read = self._json.deserialize
        if not self._validates:
            return SchemaReader.of(lambda data: read(data[start:]))
        check = self._check(written, registry)

        def checked(data: bytes) -> Any:
            json = data[start:]
            value = read(json)
            check(json)
            return value

        return SchemaReader.of(checked)

    def _check(self, written: RegisteredSchema, registry: SchemaRegistry) -> Check:
        """Validate against the declared schema, or against the writer's schema if there is none."""
        return validator_of(self.declared_schema() or written.schema, registry)

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        write = self._json.serialize
        if not self._validates:
            return SchemaWriter.of(lambda value: frame + write(value))
        check = validator_of(registered.schema, registry)

        def checked(value: object) -> bytes:
            json = write(value)
            check(json)
            return frame + json

        return SchemaWriter.of(checked)

    def _arguments(self) -> tuple[object, ...]:
        return self._text, self.type, self._validates, self.options

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSchema) and self._arguments() == other._arguments()

    def __hash__(self) -> int:
        return hash((JsonSchema, self._text, str(self.type)))

    def __repr__(self) -> str:
        if self.type is not None:
            return f"JsonSchema({getattr(self.type, '__name__', self.type)})"
        return "JsonSchema()" if self._text is None else f"JsonSchema({_title(self._text)!r})"


def _text_of(source: str | PathLike[str]) -> str:
    """Return the text of a schema, given as text or as a file."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise SerdeError(f"the JSON Schema {str(source)!r} cannot be read: {error.strerror}") from error


def _title(text: str) -> str:
    """Return the title of a schema, or an empty string."""
    contents = parsed(text)
    return str(contents.get("title", "")) if isinstance(contents, dict) else ""
