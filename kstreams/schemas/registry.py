"""`SchemaRegistry`: what serdes and commands ask of a schema registry, be it a server or the embedded log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SchemaType = Literal["AVRO", "PROTOBUF", "JSON"]


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema of another subject that a schema names.

    Parameters
    ----------
    name : str
        What the schema calls it: the full name of an Avro type, the path of a `.proto` import, a JSON Schema URL.
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
    """A schema as a registry keeps it.

    Parameters
    ----------
    id : int
        The number that is written before a record; 0 where the registry does not tell it, as for a GUID.
    guid : str
        The UUID that may be written in a header instead; `""` where the registry does not tell it, as for an id.
    schema : Schema
    subject, version : str, int
        Where it was looked up; `""` and 0 when it was asked for by its id or GUID.
    """

    id: int
    guid: str
    schema: Schema
    subject: str = ""
    version: int = 0


class SchemaRegistry(ABC):
    """Schemas by id and by subject; may be shared by threads.

    Every method raises RegistryError when the registry does not answer or refuses, and SchemaNotFoundError where there
    is no such subject, version or id.
    """

    @abstractmethod
    def schema(self, number: int) -> RegisteredSchema:
        """The schema of an id; asked for once."""

    @abstractmethod
    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        """The schema of a GUID; asked for once."""

    @abstractmethod
    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Make it the newest version of the subject, unless it is one already.

        Raises
        ------
        IncompatibleSchemaError
            When the subject's rule of compatibility forbids it.
        """

    @abstractmethod
    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of the subject that is this schema."""

    @abstractmethod
    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> RegisteredSchema:
        """A version of a subject."""

    @abstractmethod
    def subjects(self) -> Sequence[str]:
        """All subjects, sorted."""

    @abstractmethod
    def versions(self, subject: str) -> Sequence[int]:
        """The numbers of the versions of a subject, ascending."""

    @abstractmethod
    def incompatibilities(self, subject: str, schema: Schema) -> Sequence[str]:
        """Why the subject would not take a schema as its next version, in words; empty when it would."""

    @abstractmethod
    def compatibility(self, subject: str | None = None) -> str:
        """The rule of a subject, or of all that have none of their own: `BACKWARD`, `FULL_TRANSITIVE`, `NONE`, ..."""

    @abstractmethod
    def set_compatibility(self, rule: str, subject: str | None = None) -> None:
        """Change the rule of a subject, or of all that have none of their own."""

    @abstractmethod
    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> Sequence[int]:
        """Delete a version or the whole subject; the numbers of what was deleted.

        Their ids stay known. Permanently only what is deleted already can be deleted: then its ids go too.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections."""
