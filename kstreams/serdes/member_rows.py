"""`MemberRowSerde`: the keys of a store that has the members of groups as rows.

A key is: length of the group's key (4 bytes), the group's key, the slot of the aggregation (1 byte), the member.
"""

from __future__ import annotations

from typing import Any

from kstreams.serdes.base import Serde
from kstreams.serdes.scalars import BytesSerde

_LENGTH_BYTES = 4


class MemberRowSerde(BytesSerde):
    """Keys as bytes, which `row_prefix` begins.

    Parameters
    ----------
    key : Serde
        The serde of the groups' keys.
    members : tuple of type
        The types of the members. Like the serde of the keys, they show in the description of the state.
    """

    def __init__(self, key: Serde, members: tuple[Any, ...]) -> None:
        self.key = key
        self.members = members

    def __repr__(self) -> str:
        types = ", ".join(str(getattr(kind, "__name__", kind)) for kind in self.members)
        return f"MemberRowSerde({self.key!r}, {types})"


def row_prefix(group: bytes, slot: int) -> bytes:
    """Return the bytes before the member in the key of a row.

    Parameters
    ----------
    group : bytes
        The serialized key of the group.
    slot : int
        The slot of the aggregation, at most 255.

    Examples
    --------
    >>> row_prefix(b"ab", 1)
    b'\\x00\\x00\\x00\\x02ab\\x01'
    """
    return len(group).to_bytes(_LENGTH_BYTES, "big") + group + bytes([slot])
