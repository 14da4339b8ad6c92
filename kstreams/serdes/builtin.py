"""The descriptors of the serdes of this package."""

from __future__ import annotations

from typing import Any

from kstreams.serdes.avro import Avro
from kstreams.serdes.base import Serde
from kstreams.serdes.change import ChangeSerde
from kstreams.serdes.connect import ConnectJson
from kstreams.serdes.debezium import Debezium
from kstreams.serdes.debezium.positioned_row import PositionedRowSerde
from kstreams.serdes.immutable import is_immutable
from kstreams.serdes.json import JsonSerde
from kstreams.serdes.json_schema import JsonSchema
from kstreams.serdes.member_rows import MemberRowSerde
from kstreams.serdes.registry import SerdeKind, add_kind, has_immutable_values, same_bytes_when_equal
from kstreams.serdes.scalars import (
    BoolSerde,
    BytesSerde,
    DatetimeSerde,
    FloatSerde,
    IntSerde,
    StringSerde,
    UuidSerde,
)
from kstreams.serdes.subscriptions import ResponseSerde, SubscriptionSerde
from kstreams.serdes.typed import MsgpackSerde
from kstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, WindowRowSerde


def _always(serde: object) -> bool:
    return True


def _has_immutable_type(serde: Serde) -> bool:
    return serde.type is not None and is_immutable(serde.type)  # without a type, values are dicts


def _has_immutable_rows(serde: Debezium[Any]) -> bool:
    return serde.row_type is not Any and is_immutable(serde.row_type)


def _has_immutable_inner(serde: PositionedRowSerde) -> bool:
    return has_immutable_values(serde.inner)


def _inner_same_bytes_when_equal(serde: Any) -> bool:
    return same_bytes_when_equal(serde.inner)


def _scalar(name: str, default: Serde, *, same_bytes: bool = True) -> SerdeKind:
    return SerdeKind(
        serde=type(default),
        default=default,
        name=name,
        immutable=_always,
        same_bytes_when_equal=lambda serde: same_bytes,
    )


BUILTIN: tuple[SerdeKind, ...] = (
    _scalar("str", StringSerde()),
    _scalar("int", IntSerde()),
    _scalar("float", FloatSerde(), same_bytes=False),
    _scalar("bool", BoolSerde(), same_bytes=False),
    _scalar("bytes", BytesSerde()),
    _scalar("datetime", DatetimeSerde()),
    _scalar("uuid", UuidSerde()),
    SerdeKind(serde=JsonSerde, name="json", make=lambda: JsonSerde(Any), immutable=_has_immutable_type),
    SerdeKind(serde=MsgpackSerde, name="msgpack", make=lambda: MsgpackSerde(Any), immutable=_has_immutable_type),
    SerdeKind(serde=Avro, name="avro", make=Avro, immutable=_has_immutable_type),
    SerdeKind(serde=JsonSchema, name="json-schema", make=JsonSchema, immutable=_has_immutable_type),
    SerdeKind(serde=ConnectJson, name="connect-json", make=ConnectJson, immutable=_has_immutable_type),
    SerdeKind(serde=Debezium, name="debezium", make=Debezium, immutable=_has_immutable_rows),
    SerdeKind(
        serde=PositionedRowSerde,
        name="positioned-row",
        arguments=lambda serde: (serde.inner,),
        parameters=(Serde,),
        immutable=_has_immutable_inner,
    ),
    SerdeKind(
        serde=TimeWindowedSerde,
        name="windowed",
        arguments=lambda serde: (serde.inner, serde.size_ms),
        parameters=(Serde, int),
        same_bytes_when_equal=_inner_same_bytes_when_equal,
    ),
    SerdeKind(
        serde=SessionWindowedSerde,
        name="session",
        arguments=lambda serde: (serde.inner,),
        parameters=(Serde,),
        same_bytes_when_equal=_inner_same_bytes_when_equal,
    ),
    SerdeKind(
        serde=WindowRowSerde,
        name="window-row",
        arguments=lambda serde: (serde.inner, serde.size_ms),
        parameters=(Serde, int),
    ),
    SerdeKind(serde=MemberRowSerde, immutable=_always, same_bytes_when_equal=_always),
    SerdeKind(serde=ChangeSerde, name="change", arguments=lambda serde: (serde.inner,), parameters=(Serde,)),
    SerdeKind(
        serde=SubscriptionSerde,
        name="subscription",
        arguments=lambda serde: (serde.primary_key,),
        parameters=(Serde,),
    ),
    SerdeKind(serde=ResponseSerde, name="response", arguments=lambda serde: (serde.value,), parameters=(Serde,)),
)

for _kind in BUILTIN:
    add_kind(_kind)
