"""Subscriptions and responses of foreign-key joins, in the format of Kafka Streams.

A row of the left table subscribes to a key of the right table. All numbers are big endian.

A subscription is the value of a record in the registration topic. The key of the record is the foreign key.

======================= =============================================================
1 byte                  version of the format, 1; the highest bit is set if there is no hash
1 byte                  the `Instruction`
16 bytes, or none       murmur3 hash of the left value; none if the left row was deleted
all but the last 4      the left row's key, serialized
4 bytes                 the partition of the left table, to which the response is written
======================= =============================================================

A response is the value of a record in the response topic. The key of the record is the left row's key.

======================= =============================================================
1 byte                  version of the format, 0; the highest bit is set if there is no hash
16 bytes, or none       the hash of the subscription
the other bytes         the right value, serialized; no bytes if there is no right row
======================= =============================================================

A right value without bytes (an empty string) is read as no value, as in Kafka Streams.

A key in the subscription store of the right side is the length of the serialized foreign key (4 bytes), the foreign key
and the left row's key. So all subscriptions to one key are adjacent.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

from kstreams.serdes.base import Serde, SerdeUse, decode_error, of_topic_within

_SUBSCRIPTION_VERSION = 1
_RESPONSE_VERSION = 0
_NO_HASH = 0x80
_HASH_BYTES = 16
_INT = struct.Struct(">i")


class Instruction(IntEnum):
    """The instruction of a subscription to the right side."""

    DELETE_NO_PROPAGATE = 0  # delete the subscription, without a response
    DELETE_AND_PROPAGATE = 1  # delete the subscription, and respond with null
    PROPAGATE_NULL_IF_NO_MATCH = 2  # respond in any case
    PROPAGATE_ONLY_IF_MATCH = 3  # respond only if there is a right row


_INSTRUCTIONS = tuple(Instruction)


class Subscription(NamedTuple):
    """A left row's subscription to a right row. `hash` is None if the left row was deleted."""

    hash: bytes | None
    instruction: Instruction
    primary_key: Any
    partition: int


class SubscriptionResponse(NamedTuple):
    """The right row of a subscription, or None. `partition` is the target partition and is not serialized."""

    hash: bytes | None
    value: Any
    partition: int | None = None


class SubscriptionSerde(Serde[Subscription]):
    """Serde of subscriptions. The module describes the format.

    Parameters
    ----------
    primary_key : Serde
        Serde of the left table's keys.

    Examples
    --------
    >>> from kstreams.serdes import StringSerde
    >>> subscription = Subscription(None, Instruction.DELETE_AND_PROPAGATE, "k", 3)
    >>> SubscriptionSerde(StringSerde()).serialize(subscription)
    b'\\x81\\x01k\\x00\\x00\\x00\\x03'
    """

    def __init__(self, primary_key: Serde) -> None:
        self.primary_key = primary_key
        self.type = Subscription

    def of_topic(self, use: SerdeUse) -> Serde[Subscription]:
        return of_topic_within(self, "primary_key", use)

    @property
    def asks_registry(self) -> bool:
        return self.primary_key.asks_registry

    def serialize(self, value: Subscription) -> bytes:
        head = bytes((_SUBSCRIPTION_VERSION | (_NO_HASH if value.hash is None else 0), value.instruction))
        key = self.primary_key.serialize(value.primary_key)
        return b"".join((head, value.hash or b"", key, _INT.pack(value.partition)))

    def deserialize(self, data: bytes) -> Subscription:
        if len(data) < 6 or data[0] & ~_NO_HASH != _SUBSCRIPTION_VERSION or data[1] >= len(_INSTRUCTIONS):
            raise decode_error("a subscription", data, "its version or instruction is not known")
        hash_, key_start = _read_hash(data, 2, "a subscription")
        key = self.primary_key.deserialize(data[key_start:-4])
        return Subscription(hash_, _INSTRUCTIONS[data[1]], key, _INT.unpack_from(data, len(data) - 4)[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubscriptionSerde) and self.primary_key == other.primary_key

    def __hash__(self) -> int:
        return hash((SubscriptionSerde, self.primary_key))


class ResponseSerde(Serde[SubscriptionResponse]):
    """Serde of responses. The module describes the format.

    Parameters
    ----------
    value : Serde
        Serde of the right table's values.

    Examples
    --------
    >>> from kstreams.serdes import StringSerde
    >>> ResponseSerde(StringSerde()).serialize(SubscriptionResponse(None, "row"))
    b'\\x80row'
    """

    def __init__(self, value: Serde) -> None:
        self.value = value
        self.type = SubscriptionResponse

    def of_topic(self, use: SerdeUse) -> Serde[SubscriptionResponse]:
        return of_topic_within(self, "value", use)

    @property
    def asks_registry(self) -> bool:
        return self.value.asks_registry

    def serialize(self, value: SubscriptionResponse) -> bytes:
        head = bytes((_RESPONSE_VERSION | (_NO_HASH if value.hash is None else 0),))
        return b"".join((head, value.hash or b"", b"" if value.value is None else self.value.serialize(value.value)))

    def deserialize(self, data: bytes) -> SubscriptionResponse:
        if not data or data[0] & ~_NO_HASH != _RESPONSE_VERSION:
            raise decode_error("a response", data, "its version is not known")
        hash_, start = _read_hash(data, 1, "a response")
        return SubscriptionResponse(hash_, self.value.deserialize(data[start:]) if start < len(data) else None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseSerde) and self.value == other.value

    def __hash__(self) -> int:
        return hash((ResponseSerde, self.value))


def _read_hash(data: bytes, start: int, description: str) -> tuple[bytes | None, int]:
    """Return the hash at a position and the position after the hash. The first byte tells if there is a hash."""
    if data[0] & _NO_HASH:
        return None, start
    end = start + _HASH_BYTES
    if len(data) < end:
        raise decode_error(description, data, "its hash is cut off")
    return data[start:end], end


def subscribers_prefix(foreign_key: bytes) -> bytes:
    """Return the common prefix of the store keys of all subscriptions to a foreign key.

    Examples
    --------
    >>> subscribers_prefix(b"fk") + b"pk"
    b'\\x00\\x00\\x00\\x02fkpk'
    """
    return _INT.pack(len(foreign_key)) + foreign_key
