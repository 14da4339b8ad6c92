"""`SchemaFormat`: what a format tells of its schemas, and makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, SchemaType
from kstreams.serdes.schemas.codecs import Reader, Writer
from kstreams.serdes.schemas.options import SchemaOptions


class SchemaFormat(Protocol):
    """A serde of one format, as its topics ask it; `SchemaSerde` says what each method does."""

    schema_type: ClassVar[SchemaType]
    options: SchemaOptions

    def declared_schema(self) -> Schema | None: ...

    def imported(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]: ...

    def record_name(self, schema: Schema) -> str: ...

    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> Reader: ...

    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> Writer: ...

    def unreadable(self, latest: RegisteredSchema, declared: Schema, registry: SchemaRegistry) -> Sequence[str]: ...
