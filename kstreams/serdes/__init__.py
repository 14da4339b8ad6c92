"""Serdes: how keys and values become bytes. A type names its serde; `serde_of` finds it."""

from kstreams.serdes.base import Serde, serde_of
from kstreams.serdes.change import ChangeSerde
from kstreams.serdes.json import JsonSerde
from kstreams.serdes.msgpack import MsgpackSerde
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
from kstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, WindowRowSerde

__all__ = [
    "BoolSerde",
    "BytesSerde",
    "ChangeSerde",
    "DatetimeSerde",
    "FloatSerde",
    "IntSerde",
    "JsonSerde",
    "MsgpackSerde",
    "Serde",
    "SessionWindowedSerde",
    "StringSerde",
    "TimeWindowedSerde",
    "UuidSerde",
    "WindowRowSerde",
    "serde_named",
    "serde_of",
    "type_name",
]
