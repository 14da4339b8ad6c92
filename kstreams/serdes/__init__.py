"""Serdes: conversions between keys or values and bytes. `serde_of` returns the serde of a Python type."""

import kstreams.serdes.builtin  # noqa: F401 (registers the serdes of this package)
from kstreams.serdes.avro import Avro, AvroDuration
from kstreams.serdes.base import Serde
from kstreams.serdes.change import ChangeSerde
from kstreams.serdes.connect import ConnectJson
from kstreams.serdes.debezium import Debezium
from kstreams.serdes.json import JsonSerde
from kstreams.serdes.of_type import serde_of
from kstreams.serdes.registry import SerdeKind, register_serde, serde_kind
from kstreams.serdes.scalars import (
    BoolSerde,
    BytesSerde,
    DatetimeSerde,
    FloatSerde,
    IntSerde,
    StringSerde,
    UuidSerde,
)
from kstreams.serdes.type_names import serde_named, type_name
from kstreams.serdes.typed import MsgpackSerde
from kstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, WindowedSerde, WindowRowSerde

__all__ = [
    "Avro",
    "AvroDuration",
    "BoolSerde",
    "BytesSerde",
    "ChangeSerde",
    "ConnectJson",
    "DatetimeSerde",
    "Debezium",
    "FloatSerde",
    "IntSerde",
    "JsonSerde",
    "MsgpackSerde",
    "Serde",
    "SerdeKind",
    "SessionWindowedSerde",
    "StringSerde",
    "TimeWindowedSerde",
    "UuidSerde",
    "WindowRowSerde",
    "WindowedSerde",
    "register_serde",
    "serde_kind",
    "serde_named",
    "serde_of",
    "type_name",
]
