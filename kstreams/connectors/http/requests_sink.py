"""`HttpSink`: rows as HTTP requests, several at a time, with the order of each key kept.

A lane is a share of the keys. The requests of a lane follow each other, those of different lanes go at the same time.
Every request has an idempotency key of its task and offsets, so that a receiver can recognize a request that came
before.
"""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote

import httpx
import msgspec
import pyarrow as pa

from kstreams.connectors.api import RefusedRow, Sink, SinkBatch, SinkTask, SinkWriter
from kstreams.connectors.http.service import Service
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.kernel.clock import SystemClock

RowContent: TypeAlias = Literal["value", "record"]
"""`value`: a row is the value. `record`: it also has key, partition, offset and timestamp."""

SinkBody: TypeAlias = Literal["json", "lines"]
"""`json`: the rows are an array, or the one row is the body. `lines`: a row a line."""

_MEDIA_TYPES = {"json": "application/json", "lines": "application/x-ndjson"}
_REFUSES_ALL = frozenset({401, 402, 403, 404, 405, 407, 410, 411, 415, 417, 421, 426, 431, 451})
"""Statuses that concern the address or the credentials: no row is the cause."""
_GONE = frozenset({404, 410})
_FIRST_DELAY_S = 0.2
_MAX_DELAY_S = 10.0
_REQUESTS_AHEAD = 2
_KEY = "{key}"
_RECORD_FIELDS = ("key", "offset", "timestamp", "value")
_CONFLICT_TRIES = 4

_encoder = msgspec.json.Encoder(enc_hook=str)


class Row(NamedTuple):
    """A row of a request. `key` is text. `content` is JSON; it is empty if the row deletes its key."""

    offset: int
    key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class RequestShape:
    """What requests look like.

    Parameters
    ----------
    method : str
    content : {"value", "record"}
    body : {"json", "lines"}
    max_rows, max_bytes : int
        The size of a request. A request has one row at least.
    idempotency_header : str
    """

    method: str = "POST"
    content: RowContent = "value"
    body: SinkBody = "json"
    max_rows: int = 500
    max_bytes: int = 1024 * 1024
    idempotency_header: str = "Idempotency-Key"

    def encode(self, rows: Sequence[Row]) -> bytes:
        """Return the body of a request."""
        contents = [row.content for row in rows]
        if self.body == "lines":
            return b"\n".join(contents) + b"\n"
        return contents[0] if self.max_rows == 1 else b"[" + b",".join(contents) + b"]"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How requests are sent.

    Parameters
    ----------
    concurrency : int
        The number of requests of one topic partition at the same time.
    retry_ms : int
        How long a request is sent again, before the rows since the last commit are.
    """

    concurrency: int = 4
    retry_ms: int = 20_000


class HttpSink(Sink):
    """Rows as HTTP requests.

    Parameters
    ----------
    service : Service
        `{key}` in the address stands for the key of a row. Every row is then a request of its own.
    shape : RequestShape
    delivery : Delivery
    """

    at_least_once = True

    def __init__(self, service: Service, shape: RequestShape, delivery: Delivery) -> None:
        self.service = service
        self.shape = shape
        self.delivery = delivery

    def open(self, task: SinkTask) -> SinkWriter:
        """Return a writer of a topic partition.

        Raises
        ------
        RetryLaterError
            If the service has asked to wait, and the time is not over.
        """
        self.service.check_pause()
        return HttpWriter(self, task)

    def __repr__(self) -> str:
        return f"http({self.service.masked(self.service.url)!r})"


class HttpWriter:
    """Writes one topic partition as requests.

    Parameters
    ----------
    sink : HttpSink
    task : SinkTask
    """

    def __init__(self, sink: HttpSink, task: SinkTask) -> None:
        self._shape = sink.shape
        self._deletes = _KEY in sink.service.url
        self._closing = Event()
        self._client = sink.service.client()
        self._lanes = [
            Lane(Requests(sink, self._client, f"{task.id}{suffix}", self._closing), sink.shape)
            for suffix in _lane_names(sink.delivery.concurrency, sink.shape.max_rows)
        ]

    def next_offset(self) -> int | None:
        """Return None: the target holds no offset."""
        return None

    def write(self, batch: SinkBatch) -> None:
        """Send the rows that fill requests. A null value deletes its key in the target, or has no row."""
        for row in _rows(batch, self._shape.content, keeps_tombstones=not self._deletes):
            if row.content or self._deletes:
                self._lanes[self._lane(row)].add(row)

    def flush(self) -> Sequence[RefusedRow]:
        """Send the remaining rows, and wait for all responses."""
        for lane in self._lanes:
            lane.send()
        refused_rows = [row for lane in self._lanes for row in lane.drain()]
        return sorted(refused_rows, key=lambda row: row.offset)

    def commit(self, next_offset: int) -> None:
        """Do nothing: the target has all rows after `flush`."""

    def close(self) -> None:
        """End all requests that wait to be sent again."""
        self._closing.set()
        for lane in self._lanes:
            lane.close()
        self._client.close()

    def _lane(self, row: Row) -> int:
        """Return the lane of a row: that of its key. Rows without a key are spread over all lanes."""
        number = zlib.crc32(row.key.encode()) if row.key else row.offset
        return number % len(self._lanes)


class Lane:
    """Requests that follow each other, in a thread. At most two wait, so that a slow target slows down the writer.

    Parameters
    ----------
    requests : Requests
    shape : RequestShape
    """

    def __init__(self, requests: Requests, shape: RequestShape) -> None:
        self._requests = requests
        self._shape = shape
        self._executor = ThreadPoolExecutor(1, "kstreams-http-sink")
        self._sent = deque[Future[list[RefusedRow]]]()
        self._refused = list[RefusedRow]()
        self._rows = list[Row]()
        self._bytes = 0

    def add(self, row: Row) -> None:
        """Take a row. Send a request when it is full."""
        if self._rows and self._bytes + len(row.content) > self._shape.max_bytes:
            self.send()
        self._rows.append(row)
        self._bytes += len(row.content)
        if len(self._rows) >= self._shape.max_rows:
            self.send()

    def send(self) -> None:
        """Send the rows so far. Wait while two other requests wait."""
        if not self._rows:
            return
        while len(self._sent) >= _REQUESTS_AHEAD:
            self._refused += self._sent.popleft().result()
        self._sent.append(self._executor.submit(self._requests.deliver, self._rows))
        self._rows = []
        self._bytes = 0

    def drain(self) -> list[RefusedRow]:
        """Wait for all responses, and return the rows that were refused since the last call."""
        while self._sent:
            self._refused += self._sent.popleft().result()
        refused_rows = self._refused
        self._refused = []
        return refused_rows

    def close(self) -> None:
        """Send no further request."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class Requests:
    """The requests of a lane: sent again while the service is unavailable, and divided while it refuses them.

    Parameters
    ----------
    sink : HttpSink
    client : httpx.Client
    name : str
        The beginning of idempotency keys.
    closing : Event
    """

    def __init__(self, sink: HttpSink, client: httpx.Client, name: str, closing: Event) -> None:
        self._sink = sink
        self._service = sink.service
        self._shape = sink.shape
        self._client = client
        self._name = name
        self._closing = closing
        self._clock = SystemClock()
        self._has_failed = False

    def deliver(self, rows: Sequence[Row]) -> list[RefusedRow]:
        """Send rows until the service has them or refuses them, and return the refused ones.

        After an error, no further row is sent, so that the order of each key is kept.
        """
        if self._has_failed:
            raise ConnectorUnavailableError("an earlier request of the same keys has failed")
        try:
            return self._deliver(rows)
        except BaseException:
            self._has_failed = True
            raise

    def _deliver(self, rows: Sequence[Row]) -> list[RefusedRow]:
        if _KEY in self._service.url and not rows[0].key:
            return [RefusedRow(rows[0].offset, ConnectorError(f"the row has no key for {_KEY} in the address"))]
        request = self._request(rows)
        response = self._settled_response(request)
        if response.is_success or (request.method == "DELETE" and response.status_code in _GONE):
            return []
        if response.status_code < 400 or response.status_code in _REFUSES_ALL:
            raise ConnectorError(f"{self._service.describe(response)}: check the address and the credentials")
        if len(rows) == 1:
            return [RefusedRow(rows[0].offset, ConnectorError(self._service.describe(response)))]
        half = len(rows) // 2
        return [*self._deliver(rows[:half]), *self._deliver(rows[half:])]

    def _settled_response(self, request: httpx.Request) -> httpx.Response:
        """Send a request again while it is answered 409: the service may still process it under the same key."""
        response = self._response(request)
        for attempt in range(_CONFLICT_TRIES):
            if response.status_code != httpx.codes.CONFLICT or self._closing.wait(_FIRST_DELAY_S * 2**attempt):
                break
            response = self._response(request)
        return response

    def _request(self, rows: Sequence[Row]) -> httpx.Request:
        url = self._service.url.replace(_KEY, quote(rows[0].key, safe=""))
        headers = {self._shape.idempotency_header: self._idempotency_key(rows)}
        if not rows[0].content:
            return self._client.build_request("DELETE", url, headers=headers)
        headers["content-type"] = _MEDIA_TYPES[self._shape.body]
        return self._client.build_request(self._shape.method, url, headers=headers, content=self._shape.encode(rows))

    def _idempotency_key(self, rows: Sequence[Row]) -> str:
        if self._shape.max_rows == 1:
            return f"{self._name}-{rows[0].offset}"
        return f"{self._name}-{rows[0].offset}-{rows[-1].offset}"

    def _response(self, request: httpx.Request) -> httpx.Response:
        """Send a request until there is a response that is not 408, 425, 429 or 5xx."""
        deadline_ms = self._clock.uptime_ms() + self._sink.delivery.retry_ms
        delay_s = _FIRST_DELAY_S
        while True:
            try:
                self._service.check_pause()
                return self._service.fetch(self._client, request)
            except ConnectorUnavailableError as error:
                wait_s = max(delay_s * random.uniform(0.5, 1.0), self._service.pause.remaining_s)
                if self._clock.uptime_ms() + wait_s * 1000 > deadline_ms or self._closing.wait(wait_s):
                    raise error
                delay_s = min(delay_s * 2, _MAX_DELAY_S)


def _lane_names(concurrency: int, max_rows: int) -> list[str]:
    """Return what distinguishes the idempotency keys of each lane. A request of one row needs no lane in its key."""
    if max_rows == 1 or concurrency == 1:
        return [""] * concurrency
    return [f"-{number}of{concurrency}" for number in range(concurrency)]


def _rows(batch: SinkBatch, content: RowContent, *, keeps_tombstones: bool) -> list[Row]:
    """Return the rows of a batch. A null value has no content, unless rows are records and tombstones are kept."""
    offsets = batch.offsets.tolist()
    keys = _plain(batch.keys)
    values = _plain(batch.values)
    key_texts = ["" if key is None else _text(key) for key in keys]
    if content == "value":
        return list(
            map(Row, offsets, key_texts, [b"" if value is None else _encoder.encode(value) for value in values])
        )
    fields = zip(keys, offsets, batch.timestamps.to_pylist(), values, strict=True)
    records = (dict(zip(_RECORD_FIELDS, record, strict=True)) for record in fields)
    contents = [
        _encoder.encode({"partition": batch.partition, **record})
        if keeps_tombstones or record["value"] is not None
        else b""
        for record in records
    ]
    return list(map(Row, offsets, key_texts, contents))


def _plain(column: pa.Array) -> list[object]:
    values: list[object] = column.to_pylist(maps_as_pydicts="strict")
    return values


def _text(key: object) -> str:
    if isinstance(key, bytes):
        return key.decode("utf-8", "backslashreplace")
    return key if isinstance(key, str) else _encoder.encode(key).decode()
