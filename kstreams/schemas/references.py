"""`ResolvedSchema`: a schema together with those of other subjects that it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kstreams.errors import RegistryError, SchemaNotFoundError
from kstreams.schemas.registry import Schema, SchemaReference, SchemaType

Find = Callable[[SchemaReference], Schema]


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A schema whose references were followed.

    Parameters
    ----------
    text : str
    type : {"AVRO", "PROTOBUF", "JSON"}
    imports : tuple of (name, text)
        What it names, and what that names in turn; each stands after those that it needs itself.
    """

    text: str
    type: SchemaType = "AVRO"
    imports: tuple[tuple[str, str], ...] = ()


def resolved(schema: Schema, find: Find) -> ResolvedSchema:
    """Follow the references of a schema.

    Parameters
    ----------
    schema : Schema
    find : callable
        The schema of a reference; raises SchemaNotFoundError where there is none.

    Raises
    ------
    RegistryError
        When a reference leads nowhere, or back to itself.

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
            referenced = _found(reference, find)
            _collect(referenced, find, imports, (*behind, reference.name))
            imports[reference.name] = referenced.text


def _found(reference: SchemaReference, find: Find) -> Schema:
    try:
        return find(reference)
    except SchemaNotFoundError:
        raise RegistryError(
            f"the schema refers to {reference.name} in version {reference.version} of the subject "
            f"{reference.subject!r}, which is not there: register that first"
        ) from None
