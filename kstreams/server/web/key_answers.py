"""`KeyAnswers`: whole answers for keys that need no wait, made without a task of the event loop and without ASGI.

Both together take longer than such a look-up. All else, refusals too, goes the usual way: so nothing is answered here
that would be refused there.
"""

from __future__ import annotations

import msgspec

from kstreams.server.guard import ALWAYS, Guard, Headers
from kstreams.server.page import ARROW, JSON
from kstreams.server.refusal import Refusal
from kstreams.server.store_query import StoreQueryParser
from kstreams.server.store_query_service import StoreQueryService

_ANY_FORM = ARROW.encode()


class KeyAnswers:
    """Answers `GET /v1/stores/{store}/keys/{key}` without parameters, where the key is plain and all is at hand.

    Parameters
    ----------
    guard : Guard
    parser : StoreQueryParser
    service : StoreQueryService
    """

    def __init__(self, guard: Guard, parser: StoreQueryParser, service: StoreQueryService) -> None:
        self._guard = guard
        self._parser = parser
        self._service = service
        self._defaults = Headers()
        self._head = b""

    def answer(self, target: bytes, headers: Headers, defaults: Headers) -> bytes | None:
        """The bytes of an answer with these default headers; None where the request has to go the usual way."""
        parts = target.split(b"/")
        if len(parts) != 6 or parts[4] != b"keys" or parts[1:3] != [b"v1", b"stores"] or not _is_plain(target):
            return None
        try:
            request_headers = self._guard.checked(headers, len(target))
            store, key = self._parser.key(parts[3].decode(), parts[5].decode(), self._guard.reader(request_headers, ""))
        except Refusal:
            return None
        page = None if _ANY_FORM in request_headers.get(b"accept", b"") else self._service.key_at_once(store, key)
        if page is None:
            return None
        body = msgspec.json.encode(page, enc_hook=str)
        return b"%s%d\r\n\r\n%s" % (self._begin(defaults), len(body), body)

    def _begin(self, defaults: Headers) -> bytes:
        """All up to the length; uvicorn has other default headers each second."""
        if defaults is not self._defaults:
            lines = [b"%s: %s\r\n" % header for header in [*defaults, (b"content-type", JSON.encode()), *ALWAYS]]
            self._head = b"HTTP/1.1 200 OK\r\n%scontent-length: " % b"".join(lines)
            self._defaults = defaults
        return self._head


def _is_plain(target: bytes) -> bool:
    return b"?" not in target and b"%" not in target and b"#" not in target and target.isascii()
