"""Values with their headers: how they live, and how they lie in bytes: the value as a part, then the headers.

So they are in the files of stores and of bundles. In a changelog topic the headers are those of the record (see
`task_state.py`), as Kafka Streams writes them.
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
    """A value of a store as one without headers has it; of such a store the same.

    Examples
    --------
    >>> without_headers(ValueTimestampHeaders("a", 5, [("trace", b"7")]))
    ValueAndTimestamp(value='a', timestamp=5)
    """
    bare = _BARE.get(type(row))
    return row if bare is None else bare(row)


def headers_of(row: Any) -> Headers:
    """The headers of a value of a store; none of one without.

    Examples
    --------
    >>> headers_of(AggregationWithHeaders(3, [("trace", b"7")])), headers_of(3)
    ([('trace', b'7')], ())
    """
    return row.headers if type(row) in _BARE else ()


def checked_row(row: object, form: type[Any]) -> Any:
    """The same, if it is of the form that a store keeps; raises TypeError for a bare value.

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
    """Headers as a store keeps them: nobody can change them any more; raises TypeError for what are none.

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
    """Serialized values with their headers; null stays null.

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
    """What `joined` has joined."""
    rows = [(None, ()) if data is None else part(data) for data in column.to_pylist()]
    return pa.array([value for value, _ in rows], pa.binary()), [headers for _, headers in rows]


def part(data: bytes, at: int = 0) -> tuple[bytes | None, Headers]:
    """The same of one row, which begins at a place."""
    (value,), end = unpacked(data, at, 1)
    return value, unpacked_headers(data, end)
