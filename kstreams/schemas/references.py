"""`ResolvedSchema`: a schema together with the schemas that it refers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kstreams.errors import RegistryError, SchemaNotFoundError
from kstreams.schemas.registry import Schema, SchemaReference, SchemaType

FindSchema = Callable[[SchemaReference], Schema]


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A schema with the texts of all its references.

    Parameters
    ----------
    text : str
    type : {"AVRO", "PROTOBUF", "JSON"}
    imports : tuple of (name, text)
        The schemas that it refers to, directly or indirectly. Each schema stands after the schemas that it refers to.
    """

    text: str
    type: SchemaType = "AVRO"
    imports: tuple[tuple[str, str], ...] = ()


def resolved(schema: Schema, find: FindSchema) -> ResolvedSchema:
    """Collect the texts of all references of a schema.

    Parameters
    ----------
    schema : Schema
    find : callable
        `(reference) -> schema`. Raises SchemaNotFoundError if the schema does not exist.

    Raises
    ------
    RegistryError
        If a referenced schema does not exist, or the references form a cycle.

    Examples
    --------
    >>> order = Schema('{"type": "array", "items": "Item"}', references=(SchemaReference("Item", "item", 1),))
    >>> resolved(order, lambda reference: Schema("{...}")).imports
    (('Item', '{...}'),)
    """
    imports: dict[str, str] = {}
    _collect(schema, find, imports, ())
    return ResolvedSchema(schema.text, schema.type, tuple(imports.items()))


def _collect(schema: Schema, find: FindSchema, imports: dict[str, str], path: tuple[str, ...]) -> None:
    """Add the references of a schema to `imports`. `path` has the names of the references that lead to the schema."""
    for reference in schema.references:
        if reference.name in path:
            raise RegistryError(f"the schema {reference.name} refers to itself: {' -> '.join((*path, reference.name))}")
        if reference.name not in imports:
            referenced = _referenced_schema(reference, find)
            _collect(referenced, find, imports, (*path, reference.name))
            imports[reference.name] = referenced.text


def _referenced_schema(reference: SchemaReference, find: FindSchema) -> Schema:
    try:
        return find(reference)
    except SchemaNotFoundError:
        raise RegistryError(
            f"the schema refers to {reference.name} in version {reference.version} of the subject "
            f"{reference.subject!r}, which does not exist: register it first"
        ) from None
