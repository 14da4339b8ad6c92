"""Changelog records of versioned stores: one for each version, with the version's time in the key.

Compaction retains the last record of each key, and deletes other records by their age. So each version has a key of
its own: its record is retained until another record deletes it. Kafka Streams writes the plain key, with the time as
that of the record; `in_rows` converts such records.

The key of a record is the key of the version, its time (8 bytes, big endian) and `MARK`. The value is a 1 and the value
of the version, or a 0 if the version is a deletion, or null if the version has expired.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.state.api import Changes
from kstreams.state.rows.byte_columns import big_endian, cut, integers, join, prefixed

MARK = b"\xffks-ver\xff"
"""No key that is text or JSON ends with it, because they have no byte 255."""
_VALUE = b"\x01"
_DELETION = b"\x00"
_EARLIEST_MS = 1  # Kafka's client cannot write 0
_TIME_BYTES = 8
_TAIL_BYTES = _TIME_BYTES + len(MARK)


class Versions(NamedTuple):
    """Versions of a store as columns."""

    keys: pa.Array  # binary
    times: pa.Array  # int64 ms
    values: pa.Array  # binary, null if the version is a deletion, or has expired
    are_gone: pa.Array  # bool


def version_rows(versions: Versions) -> Changes:
    """Return the records of versions.

    Examples
    --------
    >>> keys, values = pa.array([b"a", b"a", b"a"]), pa.array([b"v", None, None], pa.binary())
    >>> rows = version_rows(Versions(keys, pa.array([5, 6, 7]), values, pa.array([False, False, True])))
    >>> rows.keys.to_pylist()[0]
    b'a\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05\\xffks-ver\\xff'
    >>> rows.values.to_pylist(), versions_of(rows).times.to_pylist()
    ([b'\\x01v', b'\\x00', None], [5, 6, 7])
    """
    keys = join(versions.keys, big_endian(versions.times), pa.scalar(MARK, pa.binary()))
    values = pc.fill_null(prefixed(_VALUE, versions.values), _DELETION)
    present = pc.if_else(versions.are_gone, pa.scalar(None, pa.binary()), values)
    return Changes(keys, present, pc.max_element_wise(versions.times, _EARLIEST_MS))


def versions_of(rows: Changes) -> Versions:
    """Return the versions of the records from `version_rows`."""
    times = integers(cut(rows.keys, -_TAIL_BYTES, -len(MARK)))
    has_value = pc.fill_null(pc.starts_with(rows.values, _VALUE), False)
    values = pc.if_else(has_value, cut(rows.values, len(_VALUE)), pa.scalar(None, pa.binary()))
    return Versions(cut(rows.keys, 0, -_TAIL_BYTES), times, values, rows.values.is_null())


def in_rows(records: Changes) -> Changes:
    """Return records of a changelog in the form of `version_rows`; records of Kafka Streams are converted.

    Examples
    --------
    >>> old = Changes(pa.array([b"a", b"b"]), pa.array([b"v", None], pa.binary()), pa.array([5, 6]))
    >>> new = in_rows(old)
    >>> new.keys.to_pylist()[1], new.values.to_pylist()
    (b'b\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x06\\xffks-ver\\xff', [b'\\x01v', b'\\x00'])
    >>> in_rows(new) is new
    True
    """
    are_rows = pc.ends_with(records.keys, MARK)
    if pc.all(are_rows, min_count=0).as_py():
        return records
    none_expired = pa.repeat(False, len(records))
    converted = version_rows(Versions(records.keys, records.timestamps, records.values, none_expired))
    return Changes(*(pc.if_else(are_rows, column, other) for column, other in zip(records, converted, strict=True)))
