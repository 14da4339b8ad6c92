"""Values with headers: their live form, and their bytes: the value as a part, then the headers (see `rows/packing.py`).

The files of stores and of bundles have these bytes. In a changelog topic, the headers are those of the record (see
`task_state.py`), as in Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, NoReturn

import pyarrow as pa

from kstreams.record import AggregationWithHeaders, Headers, ValueAndTimestamp, ValueTimestampHeaders
from kstreams.state.rows.packing import packed, packed_headers, unpacked, unpacked_headers

_BARE: Mapping[type, Callable[[Any], Any]] = {
    ValueTimestampHeaders: lambda row: ValueAndTimestamp(row[0], row[1]),
    AggregationWithHeaders: itemgetter(0),
}


def without_headers(row: object) -> Any:
    """Return the value of a store without its headers.

    Examples
    --------
    >>> without_headers(ValueTimestampHeaders("a", 5, [("trace", b"7")]))
    ValueAndTimestamp(value='a', timestamp=5)
    """
    bare = _BARE.get(type(row))
    return row if bare is None else bare(row)


def headers_of(row: Any) -> Headers:
    """Return the headers of a store's value; empty if the store has no headers.

    Examples
    --------
    >>> headers_of(AggregationWithHeaders(3, [("trace", b"7")])), headers_of(3)
    ([('trace', b'7')], ())
    """
    return row.headers if type(row) in _BARE else ()


def checked_row(row: object, form: type[Any]) -> Any:
    """Return a value of the type that a store takes; raise TypeError for any other value.

    Examples
    --------
    >>> checked_row(AggregationWithHeaders(3), AggregationWithHeaders).aggregation
    3
    """
    if isinstance(row, form):
        return row
    fields = ", ".join(form._fields[1:])
    raise TypeError(f"this store keeps headers too: put {form.__name__}({row!r}, {fields})")


def headers_to_keep(headers: Headers) -> Headers:
    """Return headers in an immutable form; raise TypeError for anything that is not a header.

    Examples
    --------
    >>> headers_to_keep([["trace", b"7"]])
    (('trace', b'7'),)
    """
    return tuple([_pair(*header) if len(header) == 2 else _refuse(header) for header in headers])


def _pair(name: str, value: bytes | None) -> tuple[str, bytes | None]:
    return (name, value) if type(name) is str and (value is None or type(value) is bytes) else _refuse((name, value))


def _refuse(header: object) -> NoReturn:
    raise TypeError(f"{header!r} is no header: give pairs of a name and bytes, as ('trace-id', b'7')")


def joined(values: pa.Array, headers: Iterable[Headers]) -> pa.Array:
    """Encode serialized values with their headers; null stays null.

    Examples
    --------
    >>> values, headers = parted(joined(pa.array([b"v", None]), [(("trace", b"7"),), ()]))
    >>> values.to_pylist(), headers
    ([b'v', None], [(('trace', b'7'),), ()])
    """
    rows = zip(values.to_pylist(), headers, strict=True)
    return pa.array(
        [None if value is None else packed(value) + packed_headers(row_headers) for value, row_headers in rows],
        pa.binary(),
    )


def parted(column: pa.Array) -> tuple[pa.Array, list[Headers]]:
    """Decode the values and headers that `joined` has encoded."""
    rows = [(None, ()) if data is None else part(data) for data in column.to_pylist()]
    return pa.array([value for value, _ in rows], pa.binary()), [headers for _, headers in rows]


def part(data: bytes, at: int = 0) -> tuple[bytes | None, Headers]:
    """Decode the value and the headers of one row from a position on."""
    (value,), end = unpacked(data, at, 1)
    return value, unpacked_headers(data, end)
