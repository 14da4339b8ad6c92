"""`ResolvedSchema`: a schema together with the schemas that it refers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kstreams.errors import RegistryError, SchemaNotFoundError
from kstreams.schemas.registry import Schema, SchemaReference, SchemaType

Find = Callable[[SchemaReference], Schema]


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A schema with the texts of all its references.

    Parameters
    ----------
    text : str
    type : {"AVRO", "PROTOBUF", "JSON"}
    imports : tuple of (name, text)
        The schemas that it needs, directly or indirectly, each after the schemas that it needs itself.
    """

    text: str
    type: SchemaType = "AVRO"
    imports: tuple[tuple[str, str], ...] = ()


def resolved(schema: Schema, find: Find) -> ResolvedSchema:
    """Collect the texts of all references of a schema.

    Parameters
    ----------
    schema : Schema
    find : callable
        `(reference) -> schema`. Raises SchemaNotFoundError if there is none.

    Raises
    ------
    RegistryError
        If a referenced schema does not exist, or references form a cycle.

    Examples
    --------
    >>> order = Schema('{"type": "array", "items": "Item"}', references=(SchemaReference("Item", "item", 1),))
    >>> resolved(order, lambda reference: Schema("{...}")).imports
    (('Item', '{...}'),)
    """
    imports: dict[str, str] = {}
    _collect(schema, find, imports, ())
    return ResolvedSchema(schema.text, schema.type, tuple(imports.items()))


def _collect(schema: Schema, find: Find, imports: dict[str, str], behind: tuple[str, ...]) -> None:
    for reference in schema.references:
        if reference.name in behind:
            raise RegistryError(
                f"the schema {reference.name} refers to itself: {' -> '.join((*behind, reference.name))}"
            )
        if reference.name not in imports:
            referenced = _schema_of(reference, find)
            _collect(referenced, find, imports, (*behind, reference.name))
            imports[reference.name] = referenced.text


def _schema_of(reference: SchemaReference, find: Find) -> Schema:
    try:
        return find(reference)
    except SchemaNotFoundError:
        raise RegistryError(
            f"the schema refers to {reference.name} in version {reference.version} of the subject "
            f"{reference.subject!r}, which does not exist: register it first"
        ) from None
