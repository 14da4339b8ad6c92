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
        schema = _msgspec_schema(serde.type)
    title = getattr(serde.type, "__name__", None)
    named = {"title": title, **schema} if title else schema
    return {"$schema": _DIALECT, **named}


def _msgspec_schema(kind: object) -> dict[str, object]:
    """Return the schema of a class with its fields at the top level, where msgspec writes only a reference."""
    type_info(kind)  # only one thread may let msgspec inspect a type for the first time
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise SerdeError(f"{kind!r} has no JSON Schema: {error}") from error
    definitions: dict[str, Any] = schema.get("$defs", {})
    name = schema.get("$ref", "").removeprefix(_DEFINITIONS)
    if name not in definitions:
        return schema
    is_recursive = f'"{_DEFINITIONS}{name}"'.encode() in msgspec.json.encode(definitions)
    needed_definitions = {
        other: definition for other, definition in definitions.items() if is_recursive or other != name
    }
    return {**definitions[name], **({"$defs": needed_definitions} if needed_definitions else {})}


Validate: TypeAlias = Callable[[bytes], None]
"""Raises SerdeError for JSON that is not valid."""


def validator_of(schema: Schema, registry: SchemaRegistry) -> Validate:
    """Return a function that validates JSON against a schema. The registry resolves references.

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
    document = parsed(schema.text)
    validator_class = jsonschema.validators.validator_for(document)
    try:
        validator_class.check_schema(document)
    except jsonschema.SchemaError as error:
        raise SerdeError(f"the schema is no JSON Schema: {error.message} at {error.json_path}") from error
    validator = validator_class(document, registry=_schema_resources(schema, registry))
    not_validated = (ValueError, ArithmeticError, RecursionError, Unresolvable)  # a DecodeError is a ValueError
    best_match = jsonschema.exceptions.best_match

    def check(data: bytes) -> None:
        try:
            error = best_match(validator.iter_errors(decode_json(data)))
        except not_validated as cause:
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


def _schema_resources(schema: Schema, registry: SchemaRegistry) -> object:
    """Return the schemas that a schema may refer to. Only schemas of the registry are read."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    resources: Any = Registry()
    for name, text in _referenced_texts(schema, registry):
        resources = resources.with_resource(name, DRAFT202012.create_resource(parsed(text)))
    return resources


def _referenced_texts(schema: Schema, registry: SchemaRegistry) -> Iterator[tuple[str, str]]:
    for reference in schema.references:
        imported = registry.version(reference.subject, reference.version).schema
        yield reference.name, imported.text
        yield from _referenced_texts(imported, registry)


class JsonSchema(SchemaSerde):
    """JSON preceded by the id of its schema, as Confluent's serializers write it.

    Parameters
    ----------
    kind : type or str or Path, optional
        A dataclass, msgspec Struct, TypedDict or pydantic model, from which the schema is derived. Or the text of a
        schema, or the path of a file with one (`"order.json"`): values are then dicts. By default, any JSON is read.
    type : type, optional
        The class of the values if `kind` is a schema.
    validate : bool, optional
        True to validate records with the package jsonschema on every read and write, which takes 20 microseconds or
        more per record. Default: True if `kind` is a schema. The fields of a class are checked by their types.
    subject : str or callable, optional
        The subject of the schema: `"topic"`, `"record"`, `"topic-record"`, or a function
        `(topic, is_key, title of the schema) -> subject`. Default: `value.subject.name.strategy`.
    auto_register, use_latest_version, normalize : bool, optional
        Default: the settings `auto.register.schemas`, `use.latest.version` and `normalize.schemas`.
    use_schema_id : int, optional
        The id of the schema to write with. Default: `use.schema.id`.
    strict : bool, default True
        True to refuse a schema of `use_latest_version` or `use_schema_id` that cannot read values of the declared
        schema.
    schema_id : {"prefix", "header"}, optional
        `"prefix"` for an id before the bytes, `"header"` for a GUID in a header. Default: `value.schema.id.serializer`.
    references : sequence of SchemaReference
        Schemas of other subjects that the schema refers to. The name of a reference is the URL in a `$ref`.

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
            raise SerdeError(
                "type= names the class of the values of a schema, but no schema is passed: pass its text or file first"
            )
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
        validate = validator_of(self.declared_schema() or written.schema, registry)

        def read_valid(data: bytes) -> Any:
            json = data[start:]
            value = read(json)
            validate(json)
            return value

        return SchemaReader.of(read_valid)

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        write = self._json.serialize
        if not self._validates:
            return SchemaWriter.of(lambda value: frame + write(value))
        validate = validator_of(registered.schema, registry)

        def write_valid(value: object) -> bytes:
            json = write(value)
            validate(json)
            return frame + json

        return SchemaWriter.of(write_valid)

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
    """Return the text of a schema. `source` is the text itself or the path of a file."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise SerdeError(f"the JSON Schema {str(source)!r} cannot be read: {error.strerror}") from error


def _title(text: str) -> str:
    """Return the title of a schema, or an empty string."""
    document = parsed(text)
    return str(document.get("title", "")) if isinstance(document, dict) else ""
