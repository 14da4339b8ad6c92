"""`decoder`: what reads one value with fastavro.

fastavro's compiled reader follows nested records until the process has no stack left, and takes an array of items
without bytes to be as long as its count says. Schemas with such types go through its reader in Python, with a decoder
that looks at counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final

import fastavro
from fastavro._read import read_long  # type: ignore[attr-defined]
from fastavro._read_py import read_data
from fastavro.io.binary_decoder import BinaryDecoder

from kstreams.serdes.avro.prepared import named_types
from kstreams.serdes.avro.schema import AvroSchema
from kstreams.serdes.avro.schema_parts import all_parts, holds_itself, may_be_empty

MOST_EMPTY_ITEMS: Final = 1 << 20
"""How many items an array may have that take no bytes: a few bytes could claim any number of them."""

Decode = Callable[[BytesIO], Any]


def is_endless(schema: AvroSchema) -> bool:
    """Whether a few bytes of a schema could stand for values without end."""
    return any(
        holds_itself(schema, node) or (node["type"] == "array" and may_be_empty(schema, node["items"]))
        for node in all_parts(schema)
        if not isinstance(node, list)
    )


def decoder(written: Any, wanted: Any, *, tagged: bool, careful: bool) -> Decode:
    """What reads a value from a stream.

    Parameters
    ----------
    written, wanted : object
        Prepared schemas; `wanted` is None where it is the same.
    tagged : bool
        Whether values of named types in unions come with the name, as a tuple.
    careful : bool
        For a schema that is endless.
    """
    if not careful:
        read = fastavro.schemaless_reader
        return lambda stream: read(stream, written, wanted, False, False, "strict", tagged)
    names = {"writer": named_types(written), "reader": named_types(wanted)}
    options = {"return_named_type": tagged}
    return lambda stream: read_data(_Decoder(stream), written, names, wanted, options)  # type: ignore[no-untyped-call]


class _Decoder(BinaryDecoder):
    """Reads numbers as the compiled reader does, and no more items than there can be."""

    def read_long(self) -> int:
        number: int = read_long(self.fo)
        return number

    read_int = read_long

    def iter_array(self) -> Iterator[None]:
        most = max(MOST_EMPTY_ITEMS, self.fo.getbuffer().nbytes)
        while self._block_count:
            count = abs(self._block_count)
            if self._block_count < 0:
                self.read_long()
            most -= count
            if most < 0:
                raise ValueError("an array has more items than there are bytes")
            for _ in range(count):
                yield
            self._block_count = self.read_long()

    iter_map = iter_array
