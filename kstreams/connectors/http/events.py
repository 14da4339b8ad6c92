"""`EventSource`: server-sent events, continued after each interruption with `Last-Event-ID`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from threading import Event
from typing import NamedTuple

import httpx

from kstreams.connectors.api import Position, Source, SourceBatch, SourceReader
from kstreams.connectors.http.background import BackgroundReader
from kstreams.connectors.http.records import RecordFormat
from kstreams.connectors.http.service import Service
from kstreams.errors import ConnectorError, ConnectorUnavailableError

logger = logging.getLogger(__name__)

_MEDIA_TYPE = "text/event-stream"
_RECONNECT_MS = 3_000  # as in browsers
_MAX_FAILURES = 2  # without an event in between; then the split is opened again after a longer time


class ServerSentEvent(NamedTuple):
    """An event of a stream. `id` is that of the last event that had one."""

    type: str
    data: str
    id: str


class EventParser:
    """Parser of `text/event-stream`, as the HTML standard defines it.

    Parameters
    ----------
    last_id : str
        The id of the last event before. Empty for none.
    max_bytes : int
        The longest event.
    reconnect_ms : int
        The time before the next connection, until the stream says another one.

    Examples
    --------
    >>> parser = EventParser("", max_bytes=1_000)
    >>> parser.feed("id: 1\\ndata: a\\nda")
    []
    >>> parser.feed("ta: b\\n\\n")
    [ServerSentEvent(type='message', data='a\\nb', id='1')]
    """

    def __init__(self, last_id: str, max_bytes: int, reconnect_ms: int = _RECONNECT_MS) -> None:
        self.last_id = last_id
        self.reconnect_ms = reconnect_ms
        self._max_bytes = max_bytes
        self._id = last_id
        self._text = ""
        self._type = ""
        self._data = list[str]()
        self._data_bytes = 0
        self._is_start = True

    def feed(self, text: str) -> list[ServerSentEvent]:
        """Return the events that a further part of the stream completes."""
        if self._is_start and text:
            text = text.removeprefix("\ufeff")
            self._is_start = False
        *lines, self._text = _lines(self._text + text)
        if len(self._text) + self._data_bytes > self._max_bytes:
            raise ConnectorError(f"an event is longer than {self._max_bytes:,} bytes: set max_body_bytes")
        events = [self._take(line) for line in lines]
        return [event for event in events if event is not None]

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._completed_event()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_bytes += len(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.reconnect_ms = int(value)
        return None

    def _completed_event(self) -> ServerSentEvent | None:
        self.last_id = self._id  # not before, since a connection may break within an event
        event = ServerSentEvent(self._type or "message", "\n".join(self._data), self.last_id)
        is_event = bool(self._data)
        self._type = ""
        self._data = []
        self._data_bytes = 0
        return event if is_event else None


class EventSource(Source):
    """Server-sent events of an address. The position is the id of the last event.

    Parameters
    ----------
    service : Service
    format : RecordFormat
    types : collection of str
        The types of events that become records. Empty for all.
    """

    def __init__(self, service: Service, format: RecordFormat, types: Collection[str]) -> None:
        super().__init__(key=format.key_type, value=format.value)
        self.service = service
        self.format = format
        self.types = frozenset(types)

    def splits(self) -> Iterable[str]:
        """Return the one split."""
        return [self.service.place]

    def open(self, split: str, position: Position | None) -> SourceReader:
        """Return a reader of the events after the one whose id is the position.

        Raises
        ------
        RetryLaterError
            If the service has asked to wait, and the time is not over.
        """
        self.service.check_pause()
        return BackgroundReader(
            lambda closing: self._batches(position or "", closing), "kstreams-http-events", ahead=500
        )

    def __repr__(self) -> str:
        return f"sse({self.service.masked(self.service.url)!r})"

    def _batches(self, last_id: str, closing: Event) -> Iterator[SourceBatch | None]:
        failures = _MAX_FAILURES  # the worker tries the first connection again
        reconnect_ms = _RECONNECT_MS
        with self.service.client() as client:
            while not closing.is_set():
                parser = EventParser(last_id, self.service.max_body_bytes, reconnect_ms)
                try:
                    for events in self._connection(client, parser):
                        if closing.is_set():
                            return
                        failures = 0 if events else failures
                        if events:
                            yield self._batch(events)
                        yield None
                except ConnectorUnavailableError as error:
                    failures += 1
                    if failures > _MAX_FAILURES or self.service.pause.remaining_s:
                        raise
                    logger.info("the events are continued after %r: %s", parser.last_id, error)
                last_id = parser.last_id
                reconnect_ms = parser.reconnect_ms
                closing.wait(reconnect_ms / 1000)

    def _connection(self, client: httpx.Client, parser: EventParser) -> Iterator[list[ServerSentEvent]]:
        """Yield the events of one connection, until the server ends it. The first list is empty: it is connected."""
        request = client.build_request("GET", self.service.url, headers={"accept": _MEDIA_TYPE})
        request.headers["cache-control"] = "no-store"
        if parser.last_id:
            request.headers.update([(b"last-event-id", parser.last_id.encode())])
        with self.service.answering(request), self.service.opened(client, request) as response:
            self._check(response)
            yield []
            for text in response.iter_text():
                events = parser.feed(text)
                if events:
                    yield events

    def _batch(self, events: list[ServerSentEvent]) -> SourceBatch:
        texts = [event.data.encode() for event in events if not self.types or event.type in self.types]
        return self.format.batch(texts, events[-1].id or None)

    def _check(self, response: httpx.Response) -> None:
        self.service.check_available(response)
        media_type = response.headers.get("content-type", "")
        if response.status_code != httpx.codes.OK or not media_type.startswith(_MEDIA_TYPE):
            raise ConnectorError(
                f"{self.service.describe(response)} ({media_type or 'no media type'}), which is no {_MEDIA_TYPE}: "
                "check the address and the credentials"
            )


def _lines(text: str) -> list[str]:
    """Split at CRLF, LF and CR. A CR at the end stays, since an LF may follow."""
    is_open = text.endswith("\r")
    lines = (text[:-1] if is_open else text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if is_open:
        lines[-1] += "\r"
    return lines
