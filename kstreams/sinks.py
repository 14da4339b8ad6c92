"""Sinks: other systems that take the records of a stream or a topic. Public as `ks.sinks`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from kstreams.connectors.rows import PartitionBy
from kstreams.kernel.durations import Duration, to_ms

if TYPE_CHECKING:
    from kstreams.connectors.api import Sink
    from kstreams.connectors.delta import DeltaSink
    from kstreams.connectors.files.sink import FileSink
    from kstreams.connectors.iceberg import Catalog, IcebergSink

__all__ = ["delta", "files", "http", "iceberg", "merge_files", "postgres", "sql"]


def delta(
    location: str | os.PathLike[str],
    *,
    mode: Literal["append", "upsert"] = "append",
    key: str | Sequence[str] | None = None,
    partition_by: PartitionBy | None = None,
    timestamp: str | None = None,
    evolve: bool = False,
    configuration: Mapping[str, str] | None = None,
    commit_interval: Duration = timedelta(seconds=10),
    commit_rows: int = 500_000,
    options: Mapping[str, str] | None = None,
) -> DeltaSink:
    """Return a sink that appends or upserts rows of a Delta table, exactly once and without a JVM.

    Needs the extra `delta`. If there is no table, it is created with the columns of the first rows. Each task commits
    its offset with its rows, as the version of an app transaction. `DeltaSink.compact` merges small files; unused files
    stay until `vacuum` of deltalake or Spark removes them. Kafka Connect: the Delta Lake sink of Confluent.

    Parameters
    ----------
    location : path or str
        The folder of the table, or its URI, such as `s3://bucket/trades`.
    mode : str
        `"append"` leaves out records with null values. `"upsert"` replaces the row of a key; a null value deletes it.
    key : str or sequence of str, optional
        The columns of the record's key: one for a plain key, or fields of a key with fields. `"upsert"` needs them.
        A record whose key is null is refused.
    partition_by : str, sequence of str, or mapping, optional
        The partition columns of a new table. A mapping adds columns, as in `files`. Partition columns that are part of
        the key let an upsert read their partitions only.
    timestamp : str, optional
        The column of the event time.
    evolve : bool
        True to add columns that rows have and the table has not. By default, such rows end the connector with an error.
    configuration : mapping, optional
        The properties of a new table, such as `{"delta.enableChangeDataFeed": "true"}`.
    commit_interval : timedelta or int, milliseconds
        How long rows wait at most for a commit. Each commit of a task writes at least one file.
    commit_rows : int
        The number of rows of a task after which they are committed earlier.
    options : mapping, optional
        The storage options of deltalake: `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `AWS_ALLOW_HTTP`, ... By default,
        they come from the environment.

    Raises
    ------
    ConnectorError
        If deltalake is not installed, or an upsert has no key.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sinks.delta("lake/prices", mode="upsert", key="symbol")
    delta('lake/prices', mode='upsert')
    """
    from kstreams.connectors.delta import DeltaSink

    return DeltaSink(
        location,
        mode=mode,
        key=key,
        partition_by=partition_by,
        timestamp=timestamp,
        evolve=evolve,
        configuration=configuration,
        commit_interval=commit_interval,
        commit_rows=commit_rows,
        options=options,
    )


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


def iceberg(
    catalog: Catalog,
    table: str,
    *,
    mode: Literal["append", "upsert"] = "append",
    key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    timestamp: str | None = None,
    evolve: bool = False,
    properties: Mapping[str, str] | None = None,
    commit_interval: Duration = timedelta(seconds=10),
    commit_rows: int = 500_000,
) -> IcebergSink:
    """Return a sink that appends or upserts rows of an Iceberg table, exactly once and without a JVM.

    Needs the extra `iceberg`. If there is no table, it is created with the columns of the first rows, and its namespace
    as well. Each task commits its offset with its rows, as a table property (`kstreams.offset.TASK`) and in the summary
    of the snapshot. Kafka Connect: the Iceberg sink connector.

    Parameters
    ----------
    catalog : str or mapping
        The name of a catalogue in pyiceberg's configuration, or its properties, such as
        `{"type": "sql", "uri": "sqlite:///lake/catalog.db", "warehouse": "file:///lake"}`. The property `name` names
        the catalogue, `"default"` if it is missing.
    table : str
        The name of the table with its namespace: `"db.trades"`.
    mode : str
        `"append"` leaves out records with null values. `"upsert"` replaces the row of a key; a null value deletes it.
    key : str or sequence of str, optional
        The columns of the record's key. `"upsert"` needs them. A record whose key is null is refused.
    partition_by : str or sequence of str, optional
        The partition fields of a new table: `"country"`, `"day(at)"`, `"bucket(16, id)"`, `"truncate(4, name)"`.
    timestamp : str, optional
        The column of the event time.
    evolve : bool
        True to add columns that rows have and the table has not. By default, such rows end the connector with an error.
    properties : mapping, optional
        The properties of a new table.
    commit_interval : timedelta or int, milliseconds
        How long rows wait at most for a commit. Each commit of a task writes a snapshot and at least one file.
    commit_rows : int
        The number of rows of a task after which they are committed earlier.

    Raises
    ------
    ConnectorError
        If pyiceberg is not installed, or an upsert has no key.

    Examples
    --------
    >>> import kstreams as ks
    >>> catalog = {"type": "sql", "uri": "sqlite:///lake/catalog.db", "warehouse": "file:///lake"}
    >>> ks.sinks.iceberg(catalog, "db.trades", partition_by="day(at)", timestamp="at")
    iceberg('db.trades')
    """
    from kstreams.connectors.iceberg import IcebergSink

    return IcebergSink(
        catalog,
        table,
        mode=mode,
        key=key,
        partition_by=partition_by,
        timestamp=timestamp,
        evolve=evolve,
        properties=properties,
        commit_interval=commit_interval,
        commit_rows=commit_rows,
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


def sql(
    url: str,
    table: str,
    *,
    mode: Literal["insert", "upsert"] = "insert",
    key: str | Sequence[str] = (),
    pk_mode: Literal["record_key", "record_value"] = "record_key",
    delete_enabled: bool = True,
    schema: str | None = None,
    auto_create: bool = True,
    auto_evolve: bool = False,
    offsets_table: str = "kstreams_offsets",
) -> Sink:
    """Write records to a table of a database, exactly once.

    The rows and the offset after them are one transaction of the database. The offsets are in a table beside the rows.
    A value with fields is a row with these columns. Any other value is the column `value`. Lists, dicts and nested
    classes become JSON. Kafka Connect: the JDBC sink, whose settings have the same names.

    Parameters
    ----------
    url : str
        As SQLAlchemy takes it: `postgresql://user:password@host/database`, `sqlite:///shop.db`, `mysql+pymysql://...`.
        DuckDB is `duckdb:///shop.duckdb`.
    table : str
    mode : "insert" or "upsert"
        `insert` adds a row per record, and ignores records with a null value. `upsert` changes the row of the key.
    key : str or sequence of str
        The columns of the key. The table needs a primary key or unique constraint on them for `upsert`.
    pk_mode : "record_key" or "record_value"
        `record_key`: the record's key is the value of the key column, or has fields with the names of the key columns.
        `record_value`: the record's value has the key columns; a null value is then refused.
    delete_enabled : bool
        True if a null value deletes the row of its key, in mode `upsert`. Otherwise it is ignored.
    schema : str, optional
        The schema of the table. By default the one that the database chooses.
    auto_create : bool
        True if the sink creates the table with the columns of the records, unless it exists.
    auto_evolve : bool
        True if the sink adds columns to the table for new fields.
    offsets_table : str
        The table of the offsets, which the sink creates.

    Returns
    -------
    Sink
        Rows that the database refuses are reported one by one, and all others are written.

    Raises
    ------
    ConnectorError
        If mode, key and url do not fit together.

    Examples
    --------
    >>> from kstreams import sinks
    >>> sinks.sql("postgresql://ada:secret@db.example/shop", "prices", mode="upsert", key="item")
    SqlSink(postgresql://ada:***@db.example/shop, 'prices', mode='upsert')
    """
    from kstreams.connectors.sql.sink import SqlSink

    return SqlSink(
        url,
        table,
        mode=mode,
        key=_columns(key),
        pk_mode=pk_mode,
        delete_enabled=delete_enabled,
        schema=schema,
        auto_create=auto_create,
        auto_evolve=auto_evolve,
        offsets_table=offsets_table,
    )


class SqlSinkSettings(TypedDict, total=False):
    """Further parameters of `sql`."""

    pk_mode: Literal["record_key", "record_value"]
    delete_enabled: bool
    schema: str | None
    auto_create: bool
    auto_evolve: bool
    offsets_table: str


def postgres(url: str, table: str, *, upsert: str | Sequence[str] = (), **settings: Unpack[SqlSinkSettings]) -> Sink:
    """Write records to a table of Postgres, exactly once: `sql` in short.

    Rows are loaded by COPY.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host/database`.
    table : str
    upsert : str or sequence of str
        The columns of the key whose row a record changes. Without any, a record adds a row.
    **settings
        Further parameters of `sql`.

    Returns
    -------
    Sink

    Examples
    --------
    >>> from kstreams import sinks
    >>> sinks.postgres("postgresql://ada:secret@db.example/shop", "prices", upsert="item")
    SqlSink(postgresql://ada:***@db.example/shop, 'prices', mode='upsert')
    """
    return sql(url, table, mode="upsert" if upsert else "insert", key=upsert, **settings)


def _columns(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def http(
    url: str,
    *,
    method: str = "POST",
    rows: Literal["value", "record"] = "value",
    format: Literal["json", "lines"] = "json",
    batch_rows: int = 500,
    batch_bytes: int = 1024 * 1024,
    concurrency: int = 4,
    idempotency_header: str = "Idempotency-Key",
    headers: Mapping[str, str] | None = None,
    token: str = "",
    request_timeout: Duration = timedelta(seconds=10),
    retry_timeout: Duration = timedelta(seconds=20),
) -> Sink:
    """Send rows as HTTP requests, at least once. It needs the extra `http`.

    Each request has an idempotency key of its task and offsets. With `batch_rows=1` or `{key}` in the address, the key
    of a row is the same after every crash, so a receiver that ignores repeated keys has each row once. With larger
    batches it is the same for each repetition of a request; after a crash of this process, the rows since the last
    commit may come in other batches, and `rows="record"` gives the receiver the partition and offset of each row.

    The rows of a key stay in their order. A status of 408, 425, 429 or from 500 on is tried again, after the time of
    `Retry-After` if there is one. Any other 4xx refuses: the batch is divided until single rows are refused, and these
    go to the dead letters. 401, 403, 404, 405 and others that no row can cause are errors of the connector.

    Parameters
    ----------
    url : str
        With `{key}` in it, each row is a request of its own, and a null value is a DELETE.
    method : str
    rows : {"value", "record"}
        `value`: the value. `record`: an object with `key`, `value`, `partition`, `offset` and `timestamp`. Without
        `{key}` in the address, a null value has no row of the first form.
    format : {"json", "lines"}
        `json`: an array, or for `batch_rows=1` the row itself. `lines`: a JSON row a line.
    batch_rows, batch_bytes : int
        The size of a request.
    concurrency : int
        The number of requests of a topic partition at the same time.
    idempotency_header : str
    headers : mapping of str to str
    token : str
        A bearer token.
    request_timeout : timedelta or int
    retry_timeout : timedelta or int
        How long a request is tried again, before the rows since the last commit are sent again.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sinks.http("https://ann:tiger@example.com/trades", batch_rows=100)
    http('https://ann:***@example.com/trades')
    """
    from kstreams.connectors.http.requests_sink import Delivery, HttpSink, RequestShape
    from kstreams.connectors.http.service import Service

    service = Service(url, dict(headers or {}), token, to_ms(request_timeout) / 1000)
    max_rows = 1 if "{key}" in url else batch_rows
    shape = RequestShape(method, rows, format, max_rows, batch_bytes, idempotency_header)
    return HttpSink(service, shape, Delivery(concurrency, to_ms(retry_timeout)))
