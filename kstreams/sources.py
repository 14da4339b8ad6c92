"""Sources: the data of other systems as the input of a stream, a table or a topic. Public as `ks.sources`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from kstreams.kernel.durations import Duration, Time, time_ms, to_ms

if TYPE_CHECKING:
    from kstreams.connectors.api import Source
    from kstreams.connectors.files.readers import FileReading
    from kstreams.connectors.http.cursors import Cursor, LastField, NextLink, Page

__all__ = [
    "LastField",
    "NextLink",
    "Page",
    "arrow",
    "csv",
    "generate",
    "http",
    "json_lines",
    "parquet",
    "postgres",
    "sql",
    "sse",
    "text",
    "webhook",
]

_CURSORS = frozenset({"LastField", "NextLink", "Page"})
_SECOND = timedelta(seconds=1)
_MEGABYTE = 1024 * 1024


def __getattr__(name: str) -> Any:
    if name not in _CURSORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kstreams.connectors.http import cursors

    return getattr(cursors, name)


def csv(
    location: str | os.PathLike[str],
    value: Any = dict,
    *,
    key: str | Sequence[str] = (),
    key_type: Any = None,
    timestamp: str = "",
    delimiter: str = ",",
    quote: str = '"',
    header: bool = True,
    null_values: Sequence[str] = ("",),
    follow: bool = False,
    on_error: Literal["fail", "skip"] = "fail",
    tasks: int = 4,
    options: Mapping[str, Any] | None = None,
) -> Source:
    """Read the rows of CSV files, and of those that are added later.

    Kafka Connect: the connectors for files of Confluent and others. Each file is a split. Files whose names end with
    `.gz`, `.bz2` or `.zst` are decompressed.

    Parameters
    ----------
    location : path or str
        A file, a folder, or a pattern such as `"in/**/*.csv"`, on the local disk or in an object store
        (`"s3://bucket/in/*.csv"`, with the extra `files`).
    value : type
        A class whose fields are columns, or dict for all columns as texts. Times without a zone are in UTC.
    key : str or sequence of str
        The columns of keys. A key of one column is its value, one of several is a dict.
    key_type : type, optional
        The type of keys. By default the type of the field.
    timestamp : str
        The column of event times: times, or integers in milliseconds. By default the time of reading.
    delimiter, quote : str
        Each one character. Within quotes, two quotes are one, and newlines belong to the value.
    header : bool
        False if the first line is a row: the columns are the fields of `value` in their order.
    null_values : sequence of str
        The texts that are null, unless they are quoted.
    follow : bool
        True if files are appended to, such as logs: a line is read when its newline is there. By default, files are
        whole when they appear with their names.
    on_error : "fail" or "skip"
        A record that does not fit the type becomes a dead letter, or ends the application if
        `errors.dead.letter.queue.topic.name` is not set. `skip` logs it instead, and goes on.
    tasks : int
        The greatest number of processes that share the files.
    options : mapping, optional
        Options of the object store, as obstore takes them.

    Returns
    -------
    Source

    Raises
    ------
    ConnectorError
        If the type has no fields, or fields that CSV cannot hold.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.csv("in/*.csv", key="symbol", key_type=str)
    FileSource('in/*.csv')
    """
    from kstreams.connectors.files.readers import CsvReading

    reading = CsvReading(value, delimiter=delimiter, quote=quote, header=header, null_values=null_values)
    return _files(
        location,
        reading,
        value,
        key,
        key_type,
        timestamp=timestamp,
        follow=follow,
        skips=on_error == "skip",
        tasks=tasks,
        options=options,
    )


def json_lines(
    location: str | os.PathLike[str],
    value: Any = dict,
    *,
    key: str | Sequence[str] = (),
    key_type: Any = None,
    timestamp: str = "",
    follow: bool = False,
    on_error: Literal["fail", "skip"] = "fail",
    tasks: int = 4,
    options: Mapping[str, Any] | None = None,
) -> Source:
    """Read files with a JSON value per line, and those that are added later. Parameters as for `csv`.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.json_lines("logs/app.jsonl", follow=True)
    FileSource('logs/app.jsonl')
    """
    from kstreams.connectors.files.readers import JsonLinesReading

    reading = JsonLinesReading(value)
    return _files(
        location,
        reading,
        value,
        key,
        key_type,
        timestamp=timestamp,
        follow=follow,
        skips=on_error == "skip",
        tasks=tasks,
        options=options,
    )


def text(
    location: str | os.PathLike[str],
    *,
    follow: bool = False,
    tasks: int = 4,
    options: Mapping[str, Any] | None = None,
) -> Source:
    """Read the lines of text files (UTF-8) as values, without keys. Parameters as for `csv`.

    Kafka Connect: `FileStreamSource`.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.text("books/*.txt.gz")
    FileSource('books/*.txt.gz')
    """
    from kstreams.connectors.files.readers import TextReading

    return _files(location, TextReading(), str, (), None, follow=follow, tasks=tasks, options=options)


def parquet(
    location: str | os.PathLike[str],
    value: Any = dict,
    *,
    key: str | Sequence[str] = (),
    key_type: Any = None,
    timestamp: str = "",
    tasks: int = 4,
    options: Mapping[str, Any] | None = None,
) -> Source:
    """Read the rows of Parquet files, and of those that are added later. Parameters as for `csv`.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.parquet("s3://trades/2024/**/*.parquet", options={"region": "eu-central-1"})
    FileSource('s3://trades/2024/**/*.parquet')
    """
    from kstreams.connectors.files.readers import ParquetReading

    return _files(
        location, ParquetReading(value), value, key, key_type, timestamp=timestamp, tasks=tasks, options=options
    )


def postgres(
    url: str,
    tables: str | Sequence[str],
    value: Any = dict,
    *,
    key: str | Sequence[str] = (),
    key_type: Any = None,
    slot: str | None = None,
    publication: str | None = None,
    snapshot: bool = True,
    truncate: Literal["fail", "ignore"] = "fail",
    heartbeat: Duration = timedelta(seconds=10),
) -> Source:
    """Return a source of the rows of a table of PostgreSQL and of their changes, by logical replication.

    It first reads the rows that the table has, then each change in the order of commits. A deleted row is a record
    with a null value, a changed key a deletion and a new row. Each record has the primary key as its key, and the time
    of the commit as its timestamp. The position is a log sequence number and the place in the transaction, so that a
    crash of either side neither loses nor repeats a change. It needs the extra `postgres` and `wal_level = logical`.
    Debezium: the connector for PostgreSQL with `pgoutput`.

    Parameters
    ----------
    url : str
        `postgresql://user:password@host:port/database`.
    tables : str or sequence of str
        The table, such as `orders` or `shop.orders`. It has a primary key. Several tables are possible with changes.
    value : type, default dict
        The class of rows: each field is a column. `dict` has all columns. With `ks.RowChange[T]`, values are changes
        with operation, row before and row after, transaction and log sequence number, which needs
        `REPLICA IDENTITY FULL`.
    key : str or sequence of str
        The columns of the primary key. With one column, the record's key is its value. With several columns, or by
        default, it is a dict.
    key_type : type, optional
        The type of keys: by default the type of the field in `value`. For several columns, a class with these fields.
    slot, publication : str, optional
        Names in PostgreSQL, by default of the table. What is absent is created, and a log line says how to remove it.
        Applications that read the same table need different names.
    snapshot : bool, default True
        False to read only changes since the slot was created.
    truncate : {"fail", "ignore"}, default "fail"
        What to do when the table is truncated, since the deleted keys are not known. With `ks.RowChange`, a truncation
        is a change without key unless it is ignored.
    heartbeat : timedelta or int, default 10 s
        How often the server is asked how far it has read its log, so that it retains none of an idle table.

    Raises
    ------
    ConnectorError
        If an argument does not fit.

    Examples
    --------
    >>> import msgspec
    >>> import kstreams as ks
    >>> class Order(msgspec.Struct):
    ...     id: int
    ...     customer: str
    ...     amount: float
    >>> ks.sources.postgres("postgresql://me:tiger@localhost/shop", "orders", Order, key="id")
    postgres('postgresql://****@localhost/shop', ['orders'])
    """
    from kstreams.connectors.postgres.source import PostgresSource

    return PostgresSource(
        url,
        tables=_names(tables),
        key=_names(key),
        key_type=key_type,
        value=value,
        slot=slot,
        publication=publication,
        snapshot=snapshot,
        truncate=truncate,
        heartbeat_ms=to_ms(heartbeat),
    )


def sql(
    url: str,
    *,
    table: str | Sequence[str] = (),
    query: str = "",
    value: Any = dict,
    key: str | Sequence[str] = (),
    key_type: Any = None,
    mode: Literal["bulk", "incrementing", "timestamp", "timestamp+incrementing"] = "bulk",
    incrementing_column: str = "",
    timestamp_column: str = "",
    timestamp_delay_interval: Duration = 0,
    wait_for_open_transactions: bool = False,
    poll_interval: Duration = timedelta(seconds=5),
    batch_max_rows: int = 10_000,
    schema: str | None = None,
    tasks: int = 1,
) -> Source:
    """Read the rows of tables or of a query of a database, and again those that are added or changed.

    Kafka Connect: the JDBC source, whose settings have the same names.

    Parameters
    ----------
    url : str
        As SQLAlchemy takes it: `postgresql://user:password@host/database`, `sqlite:///shop.db`, `mysql+pymysql://...`.
        DuckDB is `duckdb:///shop.duckdb`.
    table : str or sequence of str
        The tables. Each is a split, so that tasks share them.
    query : str
        A SELECT statement, instead of tables.
    value : type
        A class whose fields are columns, or `dict` for all columns.
    key : str or sequence of str
        The columns of the record's key. A key of one column is its value, one of several is a dict.
    key_type : type, optional
        The type of keys. By default the type of the field in `value`.
    mode : "bulk", "incrementing", "timestamp" or "timestamp+incrementing"
        `bulk` reads all rows in each interval. `incrementing` reads rows with a greater id, `timestamp` those with a
        later time, and `timestamp+incrementing` those with a later time, or the same time and a greater id.
    incrementing_column : str
        The column of ids, which only grow, for example a primary key by a sequence.
    timestamp_column : str
        The column with the time of the last change. It is also the event time of the record.
    timestamp_delay_interval : timedelta or int (milliseconds)
        How old a row must be. A transaction that takes longer from its time to its commit loses rows.
    wait_for_open_transactions : bool
        Tables of Postgres only. True if a row is read when all transactions that began to write before it have ended,
        so that an INSERT that draws a smaller id and commits later is not lost. A transaction that stays open holds
        back all rows after it.
    poll_interval : timedelta or int (milliseconds)
        The time between two reads.
    batch_max_rows : int
    schema : str, optional
        The schema of the tables. By default the one that the database chooses.
    tasks : int
        The greatest number of tasks that share the tables.

    Returns
    -------
    Source
        Each row is read once, from any position on. In mode `bulk`, a round that a crash has interrupted continues by
        the order of `key`, and starts again without a key.

    Raises
    ------
    ConnectorError
        If the mode lacks its column, or the type of values has no fields.

    Examples
    --------
    >>> from kstreams import sources
    >>> sources.sql("sqlite:///shop.db", table="orders", mode="incrementing", incrementing_column="id")
    SqlSource(sqlite:///shop.db, 'orders', mode='incrementing')
    """
    from kstreams.connectors.sql.source import SqlSource

    return SqlSource(
        url,
        tables=_names(table),
        query=query,
        value=value,
        key=_names(key),
        key_type=key_type,
        mode=mode,
        incrementing_column=incrementing_column,
        timestamp_column=timestamp_column,
        timestamp_delay_interval_ms=to_ms(timestamp_delay_interval),
        wait_for_open_transactions=wait_for_open_transactions,
        poll_interval_ms=to_ms(poll_interval),
        batch_max_rows=batch_max_rows,
        schema=schema,
        tasks=tasks,
    )


def _files(
    location: str | os.PathLike[str],
    reading: FileReading,
    value: Any,
    key: str | Sequence[str],
    key_type: Any,
    *,
    timestamp: str = "",
    follow: bool = False,
    skips: bool = False,
    tasks: int,
    options: Mapping[str, Any] | None,
) -> Source:
    from kstreams.connectors.files.source import FileSource

    return FileSource(
        os.fspath(location),
        reading,
        value=value,
        key=_names(key),
        key_type=key_type,
        timestamp=timestamp,
        grows=follow,
        skips=skips,
        tasks=tasks,
        options=options,
    )


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def http(
    url: str,
    value: Any = dict,
    *,
    key: str = "",
    timestamp: str = "",
    records: str = "",
    format: Literal["json", "lines", "raw"] | None = None,
    cursor: Cursor | None = None,
    interval: Duration = 10 * _SECOND,
    headers: Mapping[str, str] | None = None,
    token: str = "",
    request_timeout: Duration = 10 * _SECOND,
    max_body_bytes: int = 64 * _MEGABYTE,
) -> Source:
    """Fetch an address again and again. It needs the extra `http`.

    The position of the cursor is committed with the records, so every record that the service has once is read once,
    whatever is killed. A status of 408, 425, 429 or from 500 on is tried again, after the time of `Retry-After` if
    there is one. A document with an `ETag` or `Last-Modified` is fetched only if it has changed.

    Kafka Connect has no such connector of its own.

    Parameters
    ----------
    url : str
    value : type
        The type of values: a class, a dict, or `bytes` or `str` for records as they are.
    key, timestamp : str
        The fields of keys and of event times (milliseconds, or text in ISO 8601). Without, there are no keys, and the
        time is that of reading.
    records : str
        The fields, joined by dots, that lead to the records in the document. Default: the document itself.
    format : {"json", "lines", "raw"}
        `json`: an array of records, or one record. `lines`: a JSON record a line. `raw`: the document is one record,
        the default for `bytes` and `str`.
    cursor : NextLink, Page or LastField
        How the service continues. Without, the whole document becomes records whenever it has changed.
    interval : timedelta or int
        The time between two requests when there is nothing new; an int is in milliseconds.
    headers : mapping of str to str
    token : str
        A bearer token.
    request_timeout : timedelta or int
    max_body_bytes : int
        The longest response.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.http("https://example.com/trades?token=abc", cursor=ks.sources.LastField("id", parameter="after"))
    http('https://example.com/trades?token=***', cursor=LastField('id'))
    """
    from kstreams.connectors.http.cursors import Cursor
    from kstreams.connectors.http.polling import PolledSource
    from kstreams.connectors.http.records import RecordFormat, body_format
    from kstreams.connectors.http.service import Service

    service = Service(url, dict(headers or {}), token, to_ms(request_timeout) / 1000, max_body_bytes)
    record_format = RecordFormat(value, format or body_format(value), records, key, timestamp)
    return PolledSource(service, record_format, cursor or Cursor(), to_ms(interval))


def sse(
    url: str,
    value: Any = dict,
    *,
    key: str = "",
    timestamp: str = "",
    events: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
    token: str = "",
    idle_timeout: Duration = 60 * _SECOND,
    max_event_bytes: int = _MEGABYTE,
) -> Source:
    """Read server-sent events. It needs the extra `http`.

    The id of the last event is committed with the records, and sent as `Last-Event-ID` after each interruption. Every
    event is read once if the server gives ids to all events, and continues after them. A server that does not loses the
    events of the interruption.

    Parameters
    ----------
    url : str
    value : type
        The type of values: a class or a dict, which are read as JSON, or `str` or `bytes` for the data as they are.
    key, timestamp : str
        The fields of keys and of event times (milliseconds, or text in ISO 8601).
    events : collection of str
        The types of events that become records. Default: all.
    headers : mapping of str to str
    token : str
        A bearer token.
    idle_timeout : timedelta or int
        The time without a byte after which the connection is made again.
    max_event_bytes : int

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.sse("https://example.com/changes", events=["edit"])
    sse('https://example.com/changes')
    """
    from kstreams.connectors.http.events import EventSource
    from kstreams.connectors.http.records import RecordFormat, body_format
    from kstreams.connectors.http.service import Service

    service = Service(url, dict(headers or {}), token, to_ms(idle_timeout) / 1000, max_event_bytes)
    return EventSource(service, RecordFormat(value, body_format(value), "", key, timestamp), events)


def webhook(
    path: str,
    value: Any = dict,
    *,
    port: int,
    host: str = "127.0.0.1",
    key: str = "",
    timestamp: str = "",
    format: Literal["json", "lines", "raw"] | None = None,
    token: str = "",
    secret: str = "",
    signature_header: str = "X-Hub-Signature-256",
    idempotency_header: str = "Idempotency-Key",
    remembered_keys: int = 1_000,
    timeout: Duration = 10 * _SECOND,
    max_body_bytes: int = _MEGABYTE,
    max_pending_bytes: int = 64 * _MEGABYTE,
) -> Source:
    """Listen for requests, and answer 200 when their records are durable in the topic. Extras: `http` and `server`.

    A sender that repeats every request without a 200 loses nothing (at least once). If it also sends an idempotency key
    with each request, nothing is doubled: the last `remembered_keys` keys are committed with the records, so that a
    repeated request is answered 200 and adds no record, also after a restart or a kill.

    Other answers: 503 with `Retry-After` if the records are not durable in time or too many wait, 400 for a body that
    does not fit the type, 401 without a valid token or signature, 413 for a body that is too long.

    Parameters
    ----------
    path : str
    value : type
        The type of values: a class, a dict, or `bytes` or `str` for bodies as they are.
    port : int
    host : str
        The address to listen at. Beyond this machine, put a proxy with TLS before it.
    key, timestamp : str
        The fields of keys and of event times (milliseconds, or text in ISO 8601).
    format : {"json", "lines", "raw"}
        As for `http`. The records of one request become visible together.
    token : str
        The bearer token that requests must have.
    secret : str
        The key of an HMAC-SHA256 of the body that requests must have, in hexadecimal digits, as of GitHub.
    signature_header : str
    idempotency_header : str
    remembered_keys : int
    timeout : timedelta or int
        The longest time to an answer.
    max_body_bytes, max_pending_bytes : int
        The longest body, and the bodies that wait for their commit together.

    Examples
    --------
    >>> import kstreams as ks
    >>> ks.sources.webhook("/orders", port=8080, key="id", secret="tiger")
    webhook('/orders', port=8080)
    """
    from kstreams.connectors.http.records import RecordFormat, body_format
    from kstreams.connectors.http.webhook import WebhookAccess, WebhookLimits, WebhookSource

    return WebhookSource(
        (host, port, path),
        RecordFormat(value, format or body_format(value), "", key, timestamp),
        WebhookAccess(token, secret, signature_header),
        WebhookLimits(max_body_bytes, max_pending_bytes, to_ms(timeout), remembered_keys),
        idempotency_header,
    )


def generate(
    value: Any,
    *,
    key: str = "",
    rate: float = 1_000,
    rows: int | None = None,
    seed: int = 0,
    splits: int = 1,
    fields: Mapping[str, Sequence[Any]] | None = None,
    start: Time | None = None,
) -> Source:
    """Make up rows of a class, for demos and load.

    A row depends on the seed, its split and its number alone. So every row is written once, whatever is killed, and a
    second run with the same seed makes the same rows. Kafka Connect: the Datagen connector of Confluent.

    Parameters
    ----------
    value : type
        A class with fields of type int, float, str, bool, datetime or date. Others need `fields`.
    key : str
        The field of keys. Default: no keys.
    rate : float
        Rows a second, of all splits together. 0 for as many as possible.
    rows : int, optional
        The number of rows. Default: no end.
    seed : int
    splits : int
        The number of splits, and so of tasks.
    fields : mapping of str to sequence, optional
        The values of single fields: a list, a `range`, or for a float a tuple of its bounds.
    start : datetime or int, optional
        The event time of the first row; an int is in milliseconds. The others follow at the rate. Default: when a split
        is first read.

    Raises
    ------
    ConnectorError
        If the class has no fields, or a field needs `fields`.

    Examples
    --------
    >>> import msgspec
    >>> import kstreams as ks
    >>> class Trade(msgspec.Struct):
    ...     symbol: str
    ...     price: float
    >>> ks.sources.generate(Trade, key="symbol", rate=100, fields={"symbol": ["A", "B"], "price": (1.0, 5.0)})
    generate(Trade, seed=0)
    """
    from kstreams.connectors.generated import GeneratedSource

    return GeneratedSource(
        value,
        key=key,
        rate=rate,
        rows=-1 if rows is None else rows,
        seed=seed,
        splits=splits,
        fields=dict(fields or {}),
        start_ms=-1 if start is None else time_ms(start),
    )


def arrow(data: Any, value: Any = dict, *, key: str = "", timestamp: str = "") -> Source:
    """Read the rows of an Arrow table, of a Polars or pandas frame, or of a function that returns Arrow batches.

    Each row is read once: the position is its number. So a process that starts again needs the same rows in the same
    order.

    Parameters
    ----------
    data : pyarrow.Table, data frame, or callable
        A callable returns a table, a `RecordBatchReader` or an iterable of record batches, from the first row on each
        time.
    value : type
        The class of values, whose fields are columns. `dict` has all columns.
    key : str
        The column of keys. The keys of dicts are text. Default: no keys.
    timestamp : str
        The column of event times, as timestamps or milliseconds. Default: the time of reading.

    Raises
    ------
    ConnectorError
        If the data are no table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import kstreams as ks
    >>> ks.sources.arrow(pa.table({"symbol": ["A", "B"], "price": [1.5, 2.5]}), key="symbol")
    arrow(...)
    """
    from kstreams.connectors.tables import TableSource, batches_of

    return TableSource(batches_of(data), value, key, timestamp)
