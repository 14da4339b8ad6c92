"""Serdes with a schema registry: the frame of records, subjects, and the parts that all formats share."""

from kstreams.serdes.schemas.codecs import SchemaReader, SchemaWriter
from kstreams.serdes.schemas.options import SchemaOptions
from kstreams.serdes.schemas.schema_serde import SchemaSerde

__all__ = ["SchemaOptions", "SchemaReader", "SchemaSerde", "SchemaWriter"]
