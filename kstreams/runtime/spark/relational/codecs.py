"""Conversion between serialized and typed columns: by functions of Catalyst if it has them, else by serdes on Arrow.

Both read and write the same bytes. Bytes that are not a value of the type end the query, as on the native engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from kstreams.runtime.spark.relational.arrow_call import arrow_call
from kstreams.runtime.spark.relational.functions import F
from kstreams.serdes import BoolSerde, BytesSerde, IntSerde, Serde, StringSerde
from kstreams.serdes.arrow_types import typed_column

if TYPE_CHECKING:
    from pyspark.sql import Column

SQL_TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.timestamp("us", "UTC"): "timestamp",
}
"""Spark's type for each Arrow type."""


def decoded(serde: Serde, column: Column) -> Column:
    """Return a serialized column as a typed column."""
    codec = _CATALYST.get(type(serde))
    if codec is None:
        return arrow_call(SQL_TYPES[serde.arrow_type], _decoded, (serde,), column)
    return codec.decode(column)


def decoded_for_user(serde: Serde, column: Column) -> Column:
    """Return a serialized column as a typed column, also for structs and windowed keys, which no expression reads.

    The column stays serialized if Arrow has no type for its values.
    """
    from pyspark.sql.pandas.types import from_arrow_type

    kind = typed_column(serde, pa.array([], pa.binary())).type
    returned = from_arrow_type(kind, prefer_timestamp_ntz=False).simpleString()
    return column if pa.types.is_binary(kind) else arrow_call(returned, typed_column, (serde,), column)


def encoded(serde: Serde, column: Column, kind: str) -> Column:
    """Serialize a column of a Spark type."""
    codec = _CATALYST.get(type(serde))
    if codec is None or not is_typed(serde, kind):
        return arrow_call("binary", _encoded, (serde,), column)
    return codec.encode(column)


def in_catalyst(serde: Serde) -> bool:
    """Return True if Spark itself can decode and encode the values of a serde."""
    return type(serde) in _CATALYST


def is_typed(serde: Serde, kind: str) -> bool:
    """Return True if values of a Spark type need no conversion to be values of the serde."""
    return serde.arrow_type is not None and SQL_TYPES.get(serde.arrow_type) == kind


class _Codec(NamedTuple):
    """The Catalyst functions for the values of one serde."""

    decode: Callable[[Column], Column]
    encode: Callable[[Column], Column]


def _decode_int(column: Column) -> Column:
    number = F.conv(F.hex(column), 16, -10).cast("bigint")
    cause = "an integer of 8 bytes: unpack requires a buffer of 8 bytes"
    return F.when(F.length(column) == 8, number).when(column.isNotNull(), _serde_error(column, cause))


def encode_int(column: Column) -> Column:
    """Return integers as 8 bytes, big endian."""
    return F.unhex(F.lpad(F.hex(column), 16, "0"))


def _decode_text(column: Column) -> Column:
    text = column.cast("string")
    return F.when(F.is_valid_utf8(text), text).when(column.isNotNull(), _serde_error(column, "UTF-8 text"))


def _decode_bool(column: Column) -> Column:
    decoded = F.when(column == F.unhex(F.lit("01")), True).when(column == F.unhex(F.lit("00")), False)
    return decoded.when(column.isNotNull(), _serde_error(column, "a boolean: it must be one byte, 0 or 1"))


def _encode_bool(column: Column) -> Column:
    return F.when(column, F.unhex(F.lit("01"))).when(~column, F.unhex(F.lit("00")))


def _serde_error(column: Column, description: str) -> Column:
    """Return a column that ends the query with a `SerdeError`."""
    hex_text = F.regexp_replace(F.hex(F.substring(column, 1, 40)), "(..)", r"\\x$1")
    return F.raise_error(F.concat(F.lit("kstreams.errors.SerdeError: b'"), hex_text, F.lit(f"' is not {description}")))


def _unchanged(column: Column) -> Column:
    return column


_CATALYST: dict[type, _Codec] = {
    IntSerde: _Codec(_decode_int, encode_int),
    StringSerde: _Codec(_decode_text, lambda column: column.cast("binary")),
    BoolSerde: _Codec(_decode_bool, _encode_bool),
    BytesSerde: _Codec(_unchanged, _unchanged),
}
"""The codecs by serde; all other serdes convert Arrow arrays."""


def _decoded(serde: Serde, column: pa.Array) -> pa.Array:
    try:
        return serde.decode_column(column)
    except pa.ArrowException:
        return pa.array(serde.decode_rows(column), serde.arrow_type)  # its error names the value


def _encoded(serde: Serde, column: pa.Array) -> pa.Array:
    return serde.encode_column(column)
