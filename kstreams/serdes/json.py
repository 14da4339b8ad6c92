"""Typed JSON."""

from __future__ import annotations

import msgspec

from kstreams.serdes.typed import TypedSerde


class JsonSerde(TypedSerde):
    """Values of one type as JSON; what is read is checked against the type.

    Parameters
    ----------
    kind : type
        A msgspec Struct, dataclass, TypedDict, list, dict, union or `typing.Any`.

    Examples
    --------
    >>> JsonSerde(dict[str, int]).serialize({"a": 1})
    b'{"a":1}'
    """

    format = "JSON"
    encoder = msgspec.json.Encoder()
    decoder = msgspec.json.Decoder
