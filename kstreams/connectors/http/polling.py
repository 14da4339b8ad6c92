"""`PolledSource`: an address that is fetched again and again, from a cursor on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Event

import httpx

from kstreams.connectors.api import Position, Source, SourceBatch, SourceReader
from kstreams.connectors.http.background import BackgroundReader
from kstreams.connectors.http.cursors import Cursor
from kstreams.connectors.http.records import RecordFormat
from kstreams.connectors.http.service import Service
from kstreams.errors import ConnectorError, ConnectorUnavailableError

_DELAYS_S = (0.1, 0.4)


class PolledSource(Source):
    """An address that is fetched again and again.

    Parameters
    ----------
    service : Service
    format : RecordFormat
    cursor : Cursor
    interval_ms : int
        The time between a response that is the last for now, and the next request.
    """

    def __init__(self, service: Service, format: RecordFormat, cursor: Cursor, interval_ms: int) -> None:
        super().__init__(key=format.key_type, value=format.value)
        self.service = service
        self.format = format
        self.cursor = cursor
        self.interval_ms = interval_ms

    def splits(self) -> Iterable[str]:
        """Return the one split."""
        return [self.service.place]

    def open(self, split: str, position: Position | None) -> SourceReader:
        """Return a reader from a position on.

        Raises
        ------
        RetryLaterError
            If the service has asked to wait, and the time is not over.
        """
        self.service.check_pause()
        return BackgroundReader(lambda closing: self._batches(position, closing), "kstreams-http-poll")

    def __repr__(self) -> str:
        return f"http({self.service.masked(self.service.url)!r}, cursor={self.cursor!r})"

    def _batches(self, position: Position | None, closing: Event) -> Iterator[SourceBatch | None]:
        validators = dict[str, str]()
        validated_address = ""
        with self.service.client() as client:
            while not closing.is_set():
                request = self.cursor.request(client, self.service.url, position)
                if str(request.url) == validated_address:
                    request.headers.update(validators)
                response = self._fetch(client, request, closing)
                if response.status_code == httpx.codes.NOT_MODIFIED:
                    yield None
                    closing.wait(self.interval_ms / 1000)
                    continue
                self._check(response)
                validators = _validators(response)
                validated_address = str(request.url)
                progress = self.cursor.progress(position, response, self.format.rows(response.content))
                has_moved = progress.position != position
                position = progress.position
                if progress.rows or (has_moved and not progress.has_more):
                    yield self.format.batch(progress.rows, position)
                if not progress.has_more:
                    yield None
                    closing.wait(self.interval_ms / 1000)

    def _fetch(self, client: httpx.Client, request: httpx.Request, closing: Event) -> httpx.Response:
        """Send a request, and again after a failure that may pass at once: opening the split again takes longer."""
        for delay_s in _DELAYS_S:
            try:
                return self.service.fetch(client, request)
            except ConnectorUnavailableError:
                if self.service.pause.remaining_s or closing.wait(delay_s):
                    raise
        return self.service.fetch(client, request)

    def _check(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        if response.is_redirect:
            raise ConnectorError(f"{self.service.describe(response)}: name the address to which it redirects")
        raise ConnectorError(f"{self.service.describe(response)}: check the address and the credentials")


def _validators(response: httpx.Response) -> dict[str, str]:
    """Return the headers by which the service can tell that a document has not changed."""
    etag = response.headers.get("etag")
    modified = response.headers.get("last-modified")
    headers = {"if-none-match": etag, "if-modified-since": modified}
    return {name: value for name, value in headers.items() if value}
