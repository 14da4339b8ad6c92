"""`WebhookSource`: an HTTP server whose requests become records. It answers 200 when they are durable in the topic.

The position holds the number of requests so far, and digests of the last idempotency keys. Both are committed with the
records, so that a repeated request is recognized after a restart, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Condition, Lock

import msgspec

from kstreams.connectors.api import Position, Source, SourceBatch, SourceReader
from kstreams.connectors.http.records import RecordFormat
from kstreams.connectors.http.web_server import Request, TextResponse, WebServer
from kstreams.errors import ConnectorError

_WAIT_S = 0.2
_MAX_BATCH_ROWS = 10_000
_RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class WebhookLimits:
    """Bounds of a webhook.

    Parameters
    ----------
    body_bytes : int
        The longest body of a request.
    pending_bytes : int
        The bodies that wait for their commit, together. Further requests are answered 503.
    timeout_ms : int
        The longest time from a request to the commit of its records. After it, the answer is 503.
    remembered_keys : int
        The number of idempotency keys that are remembered.
    """

    body_bytes: int = 1024 * 1024
    pending_bytes: int = 64 * 1024 * 1024
    timeout_ms: int = 10_000
    remembered_keys: int = 1_000


@dataclass(frozen=True, slots=True)
class WebhookAccess:
    """What a request must prove. Secrets appear in no message and no `repr`.

    Parameters
    ----------
    token : str
        The bearer token of each request. Empty for none.
    secret : str
        The key of a signature: HMAC-SHA256 of the body, in hexadecimal digits. Empty for none.
    signature_header : str
        The header with the signature, which may begin with `sha256=`.
    """

    token: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    signature_header: str = "X-Hub-Signature-256"

    def admits(self, request: Request) -> bool:
        """Return True if a request has the token and a valid signature. Both are compared in constant time."""
        authorization = request.headers.get("authorization", "").encode()
        if self.token and not hmac.compare_digest(authorization, f"Bearer {self.token}".encode()):
            return False
        if not self.secret:
            return True
        signature = request.headers.get(self.signature_header.lower(), "").removeprefix("sha256=").lower().encode()
        expected_signature = hmac.new(self.secret.encode(), request.body, hashlib.sha256).hexdigest().encode()
        return hmac.compare_digest(signature, expected_signature)


class WebhookPosition(msgspec.Struct, frozen=True):
    """The number of requests whose records are in the topic, and digests of their last idempotency keys."""

    requests: int
    keys: list[str]

    @classmethod
    def of(cls, position: Position | None) -> WebhookPosition:
        """Return a committed position."""
        return cls(0, []) if position is None else cls(position["requests"], position["keys"])

    def after(self, keys: list[str], requests: int, remembered_keys: int) -> WebhookPosition:
        """Return the position after further requests."""
        all_keys = [*self.keys, *keys]
        return WebhookPosition(self.requests + requests, all_keys[max(len(all_keys) - remembered_keys, 0) :])

    def to_json(self) -> Position:
        """Return the position as a value that JSON can hold."""
        return {"requests": self.requests, "keys": self.keys}


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request whose records are not durable yet.

    Parameters
    ----------
    rows : list of bytes
    key : str
        The digest of its idempotency key. Empty for none.
    size : int
        The length of its body.
    durable : Future
        True when the records are durable, False when the webhook was closed before.
    """

    rows: list[bytes]
    key: str
    size: int
    durable: Future[bool] = field(default_factory=Future)


class WebhookSource(Source):
    """An HTTP server whose POST and PUT requests become records.

    Parameters
    ----------
    host, port, path : str, int, str
    format : RecordFormat
    access : WebhookAccess
    limits : WebhookLimits
    idempotency_header : str
    """

    commit_interval_ms = 20

    def __init__(
        self,
        address: tuple[str, int, str],
        format: RecordFormat,
        access: WebhookAccess,
        limits: WebhookLimits,
        idempotency_header: str,
    ) -> None:
        super().__init__(key=format.key_type, value=format.value)
        self.host, self.port, self.path = address
        self.format = format
        self.access = access
        self.limits = limits
        self.idempotency_header = idempotency_header.lower()

    def splits(self) -> Iterable[str]:
        """Return the one split."""
        return [self.path]

    def open(self, split: str, position: Position | None) -> SourceReader:
        """Listen, and return a reader of the requests.

        Raises
        ------
        ConnectorUnavailableError
            If the port is in use.
        """
        return WebhookReader(self, WebhookPosition.of(position))

    def __repr__(self) -> str:
        return f"webhook({self.path!r}, port={self.port})"


class WebhookReader:
    """The server of a webhook. Requests wait in memory until they are durable in the topic.

    Parameters
    ----------
    source : WebhookSource
    position : WebhookPosition
    """

    def __init__(self, source: WebhookSource, position: WebhookPosition) -> None:
        self._source = source
        self._limits = source.limits
        self._read_position = position
        self._lock = Lock()
        self._has_requests = Condition(self._lock)
        self._is_closed = False
        self._unread = deque[PendingRequest]()
        self._uncommitted = deque[tuple[int, PendingRequest]]()  # with the number of requests up to each of them
        self._by_key = dict[str, PendingRequest]()
        self._durable_keys = set(position.keys)
        self._pending_bytes = 0
        self._server = WebServer(source.host, source.port, self._answer, source.limits.body_bytes)

    def read(self) -> SourceBatch | None:
        """Return the records of the requests that wait. None if there are none after 0.2 s."""
        with self._lock:
            if not self._unread:
                self._has_requests.wait(_WAIT_S)
            requests = self._next_requests()
            if not requests:
                return None
            keys = [request.key for request in requests if request.key]
            position = self._read_position.after(keys, len(requests), self._limits.remembered_keys)
            numbers = range(self._read_position.requests + 1, position.requests + 1)
            self._uncommitted.extend(zip(numbers, requests, strict=True))
            self._read_position = position
        return self._source.format.batch([row for request in requests for row in request.rows], position.to_json())

    def committed(self, position: Position) -> None:
        """Answer the requests up to a position."""
        committed = WebhookPosition.of(position)
        with self._lock:
            durable_requests = list[PendingRequest]()
            while self._uncommitted and self._uncommitted[0][0] <= committed.requests:
                durable_requests.append(self._uncommitted.popleft()[1])
            self._durable_keys = set(committed.keys)
            for request in durable_requests:
                self._by_key.pop(request.key, None)
                self._pending_bytes -= request.size
        for request in durable_requests:
            request.durable.set_result(True)

    def close(self) -> None:
        """Stop listening. Requests that are not durable are answered 503."""
        with self._lock:
            self._is_closed = True
            pending = [*self._unread, *(request for _, request in self._uncommitted)]
        for request in pending:
            request.durable.set_result(False)
        self._server.close()

    def _next_requests(self) -> list[PendingRequest]:
        requests = list[PendingRequest]()
        rows = 0
        while self._unread and rows < _MAX_BATCH_ROWS:
            requests.append(self._unread.popleft())
            rows += len(requests[-1].rows)
        return requests

    async def _answer(self, request: Request) -> TextResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        key = self._digest(request)
        try:
            rows = self._source.format.rows(request.body)
            unreadable = self._source.format.batch(rows, position=0).unreadable
        except ConnectorError as error:
            return TextResponse(HTTPStatus.BAD_REQUEST, str(error))
        if unreadable:  # the fault of their sender
            return TextResponse(HTTPStatus.BAD_REQUEST, str(unreadable[0].error))
        pending = self._add(PendingRequest(rows, key, len(request.body)))
        if pending is None:
            return _try_later("too many requests wait for their commit")
        durable = asyncio.shield(asyncio.wrap_future(pending.durable))
        try:
            is_durable = await asyncio.wait_for(durable, self._limits.timeout_ms / 1000)
        except TimeoutError:
            is_durable = False
        return TextResponse(HTTPStatus.OK, "durable") if is_durable else _try_later("the records are not durable yet")

    def _refusal(self, request: Request) -> TextResponse | None:
        if request.path != self._source.path:
            return TextResponse(HTTPStatus.NOT_FOUND, "there is no such webhook")
        if request.method not in ("POST", "PUT"):
            return TextResponse(HTTPStatus.METHOD_NOT_ALLOWED, "send records by POST", {"allow": "POST, PUT"})
        if not self._source.access.admits(request):
            return TextResponse(HTTPStatus.UNAUTHORIZED, "the token or the signature is not valid")
        return None

    def _digest(self, request: Request) -> str:
        key = request.headers.get(self._source.idempotency_header, "")
        return hashlib.sha256(key.encode()).hexdigest()[:16] if key else ""

    def _add(self, request: PendingRequest) -> PendingRequest | None:
        """Let a request wait. Return the first request with its idempotency key, or None if too many wait."""
        with self._lock:
            if request.key in self._durable_keys:
                request.durable.set_result(True)
                return request
            if request.key in self._by_key:
                return self._by_key[request.key]
            if self._is_closed or self._pending_bytes + request.size > self._limits.pending_bytes:
                return None
            self._unread.append(request)
            self._pending_bytes += request.size
            if request.key:
                self._by_key[request.key] = request
            self._has_requests.notify()
            return request


def _try_later(reason: str) -> TextResponse:
    return TextResponse(HTTPStatus.SERVICE_UNAVAILABLE, reason, {"retry-after": str(_RETRY_AFTER_S)})
