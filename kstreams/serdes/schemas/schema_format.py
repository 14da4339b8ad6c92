"""`SchemaFormat`: what a format makes of schemas: Avro, Protobuf or JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, SchemaType
from kstreams.schemas.compatibility.rules import incompatibilities, resolved_by
from kstreams.serdes.schemas.codecs import SchemaReader, SchemaWriter
from kstreams.serdes.schemas.options import SchemaOptions


class SchemaFormat(ABC):
    """The schema that a serde declares, and readers and writers of schemas."""

    schema_type: ClassVar[SchemaType]
    options: SchemaOptions

    @abstractmethod
    def declared_schema(self) -> Schema | None:
        """The schema of what it writes; None where none was declared."""

    def imported(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]:
        """References to schemas that the declared one imports; with `register` they are registered before it."""
        return ()

    @abstractmethod
    def record_name(self, schema: Schema) -> str:
        """The full name of the record of a schema, by which subjects may go."""

    @abstractmethod
    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> SchemaReader:
        """What reads bytes of a schema; the first `start` of them are the frame.

        Raises
        ------
        SerdeError
            When nothing of this schema can be read as what the serde declares.
        """

    @abstractmethod
    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> SchemaWriter:
        """What writes with a schema, `frame` in front."""

    def unreadable(self, latest: RegisteredSchema, declared: Schema, registry: SchemaRegistry) -> Sequence[str]:
        """Why a schema cannot read what was written with the declared one, in words."""
        reasons = incompatibilities(resolved_by(registry, latest.schema), resolved_by(registry, declared))
        return list(map(str, reasons))
