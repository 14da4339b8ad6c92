"""Sinks: other systems that take the records of a stream or a topic. Public as `ks.sinks`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from kstreams.connectors.rows import PartitionBy
from kstreams.kernel.durations import Duration

if TYPE_CHECKING:
    from kstreams.connectors.files.sink import FileSink

__all__ = ["files", "merge_files"]


def files(
    location: str | os.PathLike[str],
    *,
    format: Literal["parquet", "json", "csv"] = "parquet",
    partition_by: PartitionBy | None = None,
    key: str | Sequence[str] | None = None,
    timestamp: str | None = None,
    compression: str | None = None,
    roll_rows: int = 500_000,
    roll_bytes: int = 128 << 20,
    roll_interval: Duration = timedelta(minutes=1),
    options: Mapping[str, Any] | None = None,
) -> FileSink:
    """Return a sink that writes files of rows into a folder, exactly once.

    Only files of committed rows have a name that ends with the suffix of their format, so a reader may take
    `out/**/*.parquet`. Records with null values are left out, since a file of rows cannot delete. Kafka Connect: the S3
    sink connector, or `FileStreamSink`.

    Parameters
    ----------
    location : path or str
        A folder, or a URI of an object store, such as `s3://bucket/folder`, which needs the extra `files`.
    format : str
        `"parquet"`, `"json"` (one object per line) or `"csv"` (with a header).
    partition_by : str, sequence of str, or mapping, optional
        Columns that become folders, as in Hive: `country=DE/`. A mapping adds columns by name: by an expression, or by
        a format of the event time in UTC, such as `{"day": "%Y-%m-%d"}`.
    key : str or sequence of str, optional
        The columns of the record's key: one for a plain key, or fields of a key with fields. By default, the key is not
        written.
    timestamp : str, optional
        The column of the event time.
    compression : str, optional
        For Parquet `"zstd"` (the default), `"snappy"`, `"lz4"`, `"gzip"` or `"none"`; for text `"none"` (the default),
        `"gzip"` or `"zstd"`.
    roll_rows, roll_bytes : int
        A file ends when it has so many rows or about so many bytes.
    roll_interval : timedelta or int, milliseconds
        How long rows wait at most before they are committed, and with that all files end.
    options : mapping, optional
        Options of obstore for an object store: `endpoint`, `access_key_id`, `client_options`, ... By default, they come
        from the environment.

    Raises
    ------
    ConnectorError
        If the format or the compression does not exist.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sinks.files("out/trades", partition_by={"day": "%Y-%m-%d"})
    files('out/trades', format='parquet')
    """
    from kstreams.connectors.files.sink import FileSink

    return FileSink(
        location,
        format=format,
        partition_by=partition_by,
        key=key,
        timestamp=timestamp,
        compression=compression,
        roll_rows=roll_rows,
        roll_bytes=roll_bytes,
        roll_interval=roll_interval,
        options=options,
    )


def merge_files(
    location: str | os.PathLike[str],
    *,
    target_bytes: int = 128 << 20,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Merge small Parquet files of a folder into larger ones, and return how many files were replaced.

    The sink may write meanwhile. A reader that lists the folder at the moment when files are exchanged may miss rows,
    so merge while nobody reads. If the process ends in the middle, the next merge finishes the exchange.

    Parameters
    ----------
    location : path or str
        The folder or URI of `files`.
    target_bytes : int
        Files of less than half of this size are merged to files of about this size.
    options : mapping, optional
        Options of obstore.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sinks.merge_files("no/files/yet")
    0
    """
    from kstreams.connectors.files.merge import merge_small_files

    return merge_small_files(location, target_bytes=target_bytes, options=options)
