"""Texts that cannot be hashed: keys as plain dataclasses and dicts are, in the bytes of `str`."""

from __future__ import annotations

from typing import Any

import kstreams as ks


class UnhashableText(str):
    """As `str`, but for its hash."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


class UnhashableTextSerde(ks.Serde[str]):
    """UTF-8, read as `UnhashableText`."""

    type = UnhashableText

    def serialize(self, value: str) -> bytes:
        return value.encode()

    def deserialize(self, data: bytes) -> UnhashableText:
        return UnhashableText(data.decode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnhashableTextSerde)

    def __hash__(self) -> int:
        return hash(UnhashableTextSerde)


def as_plain(kind: Any) -> Any:
    """`str` for the serde; any other type as it is."""
    return str if isinstance(kind, UnhashableTextSerde) else kind
