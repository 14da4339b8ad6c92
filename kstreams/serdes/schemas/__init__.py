"""Serdes whose bytes name a schema in a registry: the frame, subjects, and what the formats have in common."""

from kstreams.serdes.schemas.codecs import SchemaReader, SchemaWriter
from kstreams.serdes.schemas.options import SchemaOptions
from kstreams.serdes.schemas.schema_serde import SchemaSerde

__all__ = ["SchemaOptions", "SchemaReader", "SchemaSerde", "SchemaWriter"]
