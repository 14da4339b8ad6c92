"""Row tags: a header with the slice, the stream time and the task of a row.

Rows of a repartition topic carry a tag while their writers follow slices (`ProcessAlignment`); readers remove it. In a
bounded run, rows are sorted where they are written: then a tag has only the time and the rank, for readers that need
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.kernel.batch import HEADERS_TYPE, Batch, headers_column
from kstreams.processor.context.encoded_rows import EncodedRows

TAG = "kstreams.slice"
_TAG = np.dtype([("slice", ">i8"), ("time", ">i8"), ("writer", ">i4"), ("rank", ">i8")])
_UNTAGGED = np.array((-1, -1, -1, -1), _TAG).tobytes()


class TaggedRows(NamedTuple):
    """Rows without their tags, and the tags.

    Parameters
    ----------
    rows : Batch
        The rows without tags.
    slices, times, writers, ranks : numpy int array, shape (n,)
        -1 where a row has no tag, or no rank.
    """

    rows: Batch
    slices: np.ndarray
    times: np.ndarray
    writers: np.ndarray
    ranks: np.ndarray

    def placed(self) -> Batch:
        """Return the rows, with the times at which they were written (`Batch.written_at`), and their ranks."""
        rows = self.rows
        if not (self.times < 0).all():
            rows.written_at = np.where(self.times < 0, rows.timestamps.to_numpy(), self.times)
        if not (self.ranks < 0).all():
            rows.ranks = np.maximum(self.ranks, 0)
        return rows


def tagged(rows: EncodedRows, number: int, writer: int) -> EncodedRows:
    """Add a tag to each row.

    Parameters
    ----------
    rows : EncodedRows
        Rows with stream times.
    number : int
        The slice.
    writer : int
        The partition of the task.
    """
    if rows.stream_times is None:
        raise ValueError("rows are tagged with their stream times, which these do not have")
    tags = np.empty(len(rows.keys), _TAG)
    tags["slice"] = number
    tags["time"] = rows.stream_times.to_numpy()
    tags["writer"] = writer
    tags["rank"] = -1 if rows.ranks is None else rows.ranks.to_numpy()
    return rows._replace(headers=_appended(rows.headers, tags))


def timed(rows: EncodedRows) -> EncodedRows:
    """Add a tag with only the time and the rank to each row."""
    return tagged(rows, -1, -1)


def untagged(batch: Batch) -> TaggedRows:
    """Remove the tags from rows."""
    if batch.headers is None:
        return _split(batch, None, np.full(len(batch), _UNTAGGED, f"V{_TAG.itemsize}").view(_TAG))
    if _has_only_tags(batch.headers):
        values = batch.headers.flatten().field("value")
        return _split(batch, None, np.frombuffer(pc.binary_join(_as_list(values), b"")[0].as_py(), _TAG))
    rows = batch.header_rows()
    tags = [row[-1][1] or b"" if row and row[-1][0] == TAG else _UNTAGGED for row in rows]
    headers = [row[:-1] if row and row[-1][0] == TAG else row for row in rows]
    return _split(batch, headers_column(headers), np.frombuffer(b"".join(tags), _TAG))


def _split(batch: Batch, headers: pa.Array | None, tags: np.ndarray) -> TaggedRows:
    rows = Batch(batch.source, batch.offsets, batch.keys, batch.values, batch.timestamps, headers)
    return TaggedRows(rows, *(tags[name].astype(np.int64) for name in ("slice", "time", "writer", "rank")))


def _appended(headers: pa.Array | None, tags: np.ndarray) -> pa.Array:
    """Add the tags to the headers of rows."""
    if headers is not None:
        rows = zip(headers.to_pylist(), tags, strict=True)
        return pa.array([[*(row or ()), {"name": TAG, "value": tag.tobytes()}] for row, tag in rows], HEADERS_TYPE)
    count = len(tags)
    ends = np.arange(count + 1, dtype=np.int32)
    data = [None, pa.py_buffer(ends * _TAG.itemsize), pa.py_buffer(tags.tobytes())]
    values = pa.Array.from_buffers(pa.binary(), count, data)
    structs = pa.StructArray.from_arrays([pa.repeat(pa.scalar(TAG), count), values], ["name", "value"])
    return pa.ListArray.from_arrays(pa.array(ends), structs)


def _has_only_tags(headers: pa.Array) -> bool:
    if headers.null_count or not pc.all(pc.equal(pc.list_value_length(headers), 1)).as_py():
        return False
    return bool(pc.all(pc.equal(headers.flatten().field("name"), TAG)).as_py())


def _as_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
