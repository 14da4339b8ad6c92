"""Typed MessagePack: compact, and exact where JSON is not (NaN and infinity)."""

from __future__ import annotations

import msgspec

from kstreams.decoders import msgpack_decoder
from kstreams.serdes.typed import TypedSerde


class MsgpackSerde(TypedSerde):
    """Values of one type as MessagePack: what stores of aggregations by expression hold.

    Parameters
    ----------
    kind : type
        Anything that msgspec reads and writes.

    Examples
    --------
    >>> MsgpackSerde(tuple[int, float]).deserialize(MsgpackSerde(tuple[int, float]).serialize((1, float("inf"))))
    (1, inf)
    """

    format = "MessagePack"
    encoder = msgspec.msgpack.Encoder()
    decoder = staticmethod(msgpack_decoder)
