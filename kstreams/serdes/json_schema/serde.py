"""`JsonSchema`: keys and values as JSON, with their schemas in a registry."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.schemas import RegisteredSchema, Schema, SchemaRegistry
from kstreams.serdes.base import Serde
from kstreams.serdes.json_schema.derived import derived_schema
from kstreams.serdes.json_schema.validation import Check, parsed, validator_of
from kstreams.serdes.of_type import json_serde
from kstreams.serdes.schemas import Reader, SchemaOptions, SchemaSerde, Writer


class JsonSchema(SchemaSerde[Any]):
    """JSON whose schemas are in a registry, as Confluent's serializers write it.

    Parameters
    ----------
    source : type or path, optional
        A dataclass, Struct, TypedDict or pydantic model, from which a schema is derived; or a schema, as a file or a
        text. Without one, any JSON is read.
    type : type, optional
        What records of a schema become: a class with fields. Dicts unless given.
    validate : bool, optional
        Whether records are checked against the schema when they are read and written, by the package jsonschema, which
        takes some 20 microseconds or more for each. Unless given, they are where `source` is a schema, and where it
        is a class, the types of its fields are the check.
    **options
        As of `ks.Avro`: `subject`, `auto_register`, `use_latest_version`, `use_schema_id`, `normalize`, `schema_id`,
        `references`.

    Examples
    --------
    >>> import kstreams as ks
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     id: int
    ...     coupon: str | None = None
    >>> ks.JsonSchema(Order)
    JsonSchema(Order)
    """

    schema_type = "JSON"

    def __init__(
        self,
        source: Any = None,
        *,
        type: Any = None,
        validate: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init__(SchemaOptions(**options))
        is_schema = isinstance(source, str | PathLike)
        if type is not None and not is_schema:
            raise SerdeError("type= says what the records of a schema become: give the schema, or its file, first")
        self.type = type if is_schema else source
        self._text = _text_of(source) if is_schema else None
        self._validates = is_schema if validate is None else validate
        self._shown = _shown(source)

    @cached_property
    def _json(self) -> Serde[Any]:
        return json_serde(Any if self.type is None else self.type)

    def declared_schema(self) -> Schema | None:
        if self._text is not None:
            return Schema(self._text, "JSON", self.options.references)
        if self.type is None:
            return None
        return Schema(msgspec.json.encode(derived_schema(self._json)).decode(), "JSON", self.options.references)

    def record_name(self, schema: Schema) -> str:
        contents = parsed(schema.text)
        return str(contents.get("title", "")) if isinstance(contents, dict) else ""

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> Reader:
        read = self._json.deserialize
        if not self._validates:
            return Reader.of(lambda data: read(data[start:]))
        check = self._check(written, registry)

        def checked(data: bytes) -> Any:
            json = data[start:]
            value = read(json)
            check(json)
            return value

        return Reader.of(checked)

    def _check(self, written: RegisteredSchema, registry: SchemaRegistry) -> Check:
        """By the declared schema; by that of the writer where there is none."""
        return validator_of(self.declared_schema() or written.schema, registry)

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> Writer:
        write = self._json.serialize
        if not self._validates:
            return Writer.of(lambda value: frame + write(value))
        check = validator_of(registered.schema, registry)

        def checked(value: Any) -> bytes:
            json = write(value)
            check(json)
            return frame + json

        return Writer.of(checked)

    def __getstate__(self) -> dict[str, Any]:
        """The JSON serde is made anew."""
        return {name: value for name, value in self.__dict__.items() if name != "_json"}

    def __repr__(self) -> str:
        return f"JsonSchema({self._shown})"


def _text_of(source: str | PathLike[str]) -> str:
    """The text of a schema, or of the file that holds one."""
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise SerdeError(f"the JSON Schema {str(source)!r} cannot be read: {error.strerror}") from error


def _shown(source: Any) -> str:
    if source is None:
        return ""
    if isinstance(source, str | PathLike):
        return repr(str(source).partition("\n")[0])
    return getattr(source, "__name__", str(source))
