"""`decoder`: what reads one value with fastavro.

fastavro's compiled reader follows nested records until the process has no stack left, and takes an array of items
without bytes to be as long as its count says. Schemas with such types go through its reader in Python, with a decoder
that looks at counts. `schemaless_reader` looks at both schemas before each record, which takes a third of the time: so
what it calls then is called here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final

from fastavro._read import _read_data as read_compiled  # type: ignore[attr-defined]
from fastavro._read import read_long  # type: ignore[attr-defined]
from fastavro._read_py import read_data as read_in_python
from fastavro.io.binary_decoder import BinaryDecoder

from kstreams.serdes.avro.prepared import Prepared
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


def decoder(written: Prepared, wanted: Prepared | None, *, tagged: bool, careful: bool) -> Decode:
    """What reads a value from a stream.

    Parameters
    ----------
    written, wanted : Prepared
        The schemas of writer and reader; `wanted` is None where it is the same.
    tagged : bool
        Whether values of named types in unions come with the name, as a tuple.
    careful : bool
        For a schema that is endless.
    """
    root = written.root
    new_root = wanted and wanted.root
    options = {"return_named_type": tagged}
    names = {"writer": written.names, "reader": wanted.names if wanted else {}}
    if careful:
        return lambda stream: read_in_python(_Decoder(stream), root, names, new_root, options)  # type: ignore[no-untyped-call]
    return lambda stream: read_compiled(stream, root, names, new_root, options)


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
