"""`MemoryRegistry`: a schema registry in memory, which takes every schema."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Literal

from kstreams.errors import SchemaNotFoundError
from kstreams.schemas import RegisteredSchema, Schema, SchemaRegistry


class MemoryRegistry(SchemaRegistry):
    """Counts ids from 1, over all subjects; `asked` holds the ids that were asked for."""

    def __init__(self) -> None:
        self._by_id: list[Schema] = []
        self._subjects: dict[str, list[int]] = {}
        self.asked: list[int] = []
        self.is_closed = False

    def schema(self, number: int) -> RegisteredSchema:
        self.asked.append(number)
        if not 1 <= number <= len(self._by_id):
            raise SchemaNotFoundError(f"there is no schema {number}")
        return RegisteredSchema(number, str(uuid.UUID(int=number)), self._by_id[number - 1])

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        return self.schema(uuid.UUID(guid).int)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        if schema not in self._by_id:
            self._by_id.append(schema)
        number = self._by_id.index(schema) + 1
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return self.version(subject, versions.index(number) + 1)

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        for version in self.versions(subject):
            if (known := self.version(subject, version)).schema == schema:
                return known
        raise SchemaNotFoundError(f"{subject} has no such schema")

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        versions = self._subjects.get(subject, [])
        place = len(versions) if version == "latest" else version
        if not 1 <= place <= len(versions):
            raise SchemaNotFoundError(f"{subject} has no version {version}")
        number = versions[place - 1]
        return RegisteredSchema(number, str(uuid.UUID(int=number)), self._by_id[number - 1], subject, place)

    def subjects(self) -> Sequence[str]:
        return sorted(self._subjects)

    def versions(self, subject: str) -> Sequence[int]:
        return range(1, len(self._subjects.get(subject, [])) + 1)

    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        return ()

    def compatibility(self, subject: str | None = None) -> str:
        return "NONE"

    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        raise NotImplementedError

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        raise NotImplementedError

    def close(self) -> None:
        self.is_closed = True
