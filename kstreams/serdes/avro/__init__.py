"""Keys and values in Avro, with their schemas in a registry."""

from kstreams.serdes.avro.avro_serde import Avro
from kstreams.serdes.avro.logical import AvroDuration

__all__ = ["Avro", "AvroDuration"]
