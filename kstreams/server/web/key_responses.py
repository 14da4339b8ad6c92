"""`KeyResponses`: HTTP responses for keys, without a task of the event loop and without ASGI.

A task and ASGI together take longer than the look-up of a key. Every other request, also one that is refused, takes the
usual way: so this module answers nothing that the router would refuse.
"""

from __future__ import annotations

import msgspec

from kstreams.server.guard import SECURITY_HEADERS, Guard, Headers
from kstreams.server.http_error import HttpError
from kstreams.server.page import ARROW, JSON
from kstreams.server.store_query import StoreQueryParser
from kstreams.server.store_query_service import StoreQueryService

_ARROW = ARROW.encode()


class KeyResponses:
    """Responses to `GET /v1/stores/{store}/keys/{key}` without parameters, if the key is plain and no wait is needed.

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
        self._default_headers = Headers()
        self._encoded_headers = b""

    def response(self, target: bytes, headers: Headers, default_headers: Headers) -> bytes | None:
        """Return the bytes of a response. None if the request has to take the usual way.

        Parameters
        ----------
        target : bytes
            The path and the query string.
        headers : list of (bytes, bytes)
            The headers of the request.
        default_headers : list of (bytes, bytes)
            The headers that uvicorn adds to each response.
        """
        parts = target.split(b"/")
        if len(parts) != 6 or parts[4] != b"keys" or parts[1:3] != [b"v1", b"stores"] or not _is_plain(target):
            return None
        try:
            request_headers = self._guard.checked(headers, len(target))
            store, key = self._parser.key(parts[3].decode(), parts[5].decode(), self._guard.reader(request_headers, ""))
        except HttpError:
            return None
        page = None if _ARROW in request_headers.get(b"accept", b"") else self._service.key_page_nowait(store, key)
        if page is None:
            return None
        body = msgspec.json.encode(page, enc_hook=str)
        return b"%s%d\r\n\r\n%s" % (self._headers_before_length(default_headers), len(body), body)

    def _headers_before_length(self, default_headers: Headers) -> bytes:
        """Encode the status line and the headers up to the content length. Uvicorn changes its headers each second."""
        if default_headers is not self._default_headers:
            all_headers = [*default_headers, (b"content-type", JSON.encode()), *SECURITY_HEADERS]
            lines = b"".join(b"%s: %s\r\n" % header for header in all_headers)
            self._encoded_headers = b"HTTP/1.1 200 OK\r\n%scontent-length: " % lines
            self._default_headers = default_headers
        return self._encoded_headers


def _is_plain(target: bytes) -> bool:
    return b"?" not in target and b"%" not in target and b"#" not in target and target.isascii()
