"""`SchemaRegistry`: the interface of schema registries. A server's client and the embedded log implement it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SchemaType = Literal["AVRO", "PROTOBUF", "JSON"]


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A reference to a schema of another subject.

    Parameters
    ----------
    name : str
        The name in the referring schema: the full name of an Avro type, the path of a `.proto` import, a JSON Schema
        URL.
    subject : str
    version : int
    """

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema.

    Parameters
    ----------
    text : str
    type : {"AVRO", "PROTOBUF", "JSON"}
    references : tuple of SchemaReference
    """

    text: str
    type: SchemaType = "AVRO"
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema in a registry.

    Parameters
    ----------
    id : int
        The number that is written before a record. 0 if the registry does not return it, as in a look-up by GUID.
    guid : str
        The UUID that may be written in a header instead. `""` if the registry does not return it, as in look-ups by id.
    schema : Schema
    subject, version : str, int
        The subject and version of the look-up. `""` and 0 in a look-up by id or GUID.
    """

    id: int
    guid: str
    schema: Schema
    subject: str = ""
    version: int = 0


class SchemaRegistry(ABC):
    """Schemas by id and by subject. Threads may share a registry.

    Every method raises RegistryError if the registry does not answer or refuses, and SchemaNotFoundError if the
    subject, version or id does not exist.
    """

    @abstractmethod
    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema of an id. An implementation requests each id once and caches the schema."""

    @abstractmethod
    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """Return the schema of a GUID. An implementation requests each GUID once and caches the schema."""

    @abstractmethod
    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema as the newest version of a subject, unless the subject has it already.

        Raises
        ------
        IncompatibleSchemaError
            If the compatibility rule of the subject forbids the schema.
        """

    @abstractmethod
    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return the version of a subject that has this schema."""

    @abstractmethod
    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        """Return a version of a subject."""

    @abstractmethod
    def subjects(self) -> Sequence[str]:
        """Return all subjects, sorted."""

    @abstractmethod
    def versions(self, subject: str) -> Sequence[int]:
        """Return the version numbers of a subject, ascending."""

    @abstractmethod
    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        """Return the reasons why a subject would refuse a schema as its next version. Empty if it would not."""

    @abstractmethod
    def compatibility(self, subject: str | None = None) -> str:
        """Return the rule of a subject, or the default rule: `BACKWARD`, `FULL_TRANSITIVE`, `NONE`, ..."""

    @abstractmethod
    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        """Change the compatibility rule of a subject, or the default rule."""

    @abstractmethod
    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete a version or a whole subject, and return the deleted version numbers.

        Deleted schemas can still be read by id. `permanent=True` deletes their ids too. It requires that the version or
        subject was deleted without `permanent` before.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections."""
