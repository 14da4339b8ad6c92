"""Schema registries: schemas under subjects, with versions, ids and rules of compatibility."""

from kstreams.schemas.registry import (
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaRegistry,
    SchemaType,
)

__all__ = ["RegisteredSchema", "Schema", "SchemaReference", "SchemaRegistry", "SchemaType"]
