"""JSON whose schemas are in a registry."""

from kstreams.serdes.json_schema.serde import JsonSchema

__all__ = ["JsonSchema"]
