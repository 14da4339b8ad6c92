"""`Guard`: refuses requests that are addressed to another server, are too large, or have no valid token."""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kstreams.server.http_error import HttpError
from kstreams.server.limits import Limits
from kstreams.server.web.readers import ANONYMOUS, Reader, Readers


def route_path(scope: Scope) -> str:
    """Return the path of a request without the path of the mount and of a proxy.

    Some proxies remove their own path from requests, others do not.

    Examples
    --------
    >>> route_path({"path": "/api/shop/v1/stores", "root_path": "/api/shop", "app_root_path": "/api"})
    '/v1/stores'
    >>> route_path({"path": "/shop/v1/stores", "root_path": "/api/shop", "app_root_path": "/api"})
    '/v1/stores'
    """
    path: str = scope["path"]
    whole: str = scope.get("root_path", "")
    for prefix in (whole, whole.removeprefix(scope.get("app_root_path", ""))):
        if prefix and path.startswith(f"{prefix}/"):
            return path[len(prefix) :]
    return path


_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")

Headers = list[tuple[bytes, bytes]]
READER = "kstreams.reader"
"""The key of the `Reader` in the scope of a request."""

SECURITY_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class Guard:
    """The checks before the router. A client without a token does not learn which routes and stores exist.

    Parameters
    ----------
    app : ASGIApp
    readers : Readers
    hosts : collection of str
        The names that the header `Host` may have, without the port. The check stops DNS rebinding: a page of another
        site whose name resolves to this machine sends the name of that site.
    open_paths : collection of str
        The paths that need no token.
    limits : Limits
    """

    def __init__(
        self, app: ASGIApp, readers: Readers, hosts: Collection[str], open_paths: Collection[str], limits: Limits
    ) -> None:
        self._app = app
        self._readers = readers
        self._limits = limits
        self._hosts = frozenset(host.lower() for host in hosts)
        self._open = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = message["headers"]
                names = {name for name, _ in response_headers}
                missing_headers = (header for header in SECURITY_HEADERS if header[0] not in names)
                message["headers"] = [*response_headers, *missing_headers]
            await send(message)

        if scope["type"] != "http":
            return
        try:
            headers = self.checked(scope["headers"], len(scope.get("raw_path") or b"") + len(scope["query_string"]))
            scope[READER] = self.reader(headers, route_path(scope))
        except HttpError as error:
            await error.response()(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def checked(self, headers: Headers, target_bytes: int) -> dict[bytes, bytes]:
        """Return the headers by name.

        Raises
        ------
        HttpError
            If the request is addressed to another server, is too large, or has a body.
        """
        by_name = _by_name(headers)
        if _host(by_name.get(b"host", b"").decode("latin-1")) not in self._hosts:
            raise HttpError(403, "the header `Host` does not name this server")
        if target_bytes > self._limits.target_bytes:
            raise HttpError(414, "the URL is too long")
        if sum(map(len, by_name)) + sum(map(len, by_name.values())) > self._limits.header_bytes:
            raise HttpError(431, "the headers are too long")
        if by_name.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in by_name:
            raise HttpError(413, "the request has a body: send it without one")
        return by_name

    def reader(self, headers: dict[bytes, bytes], path: str) -> Reader:
        """Return the reader whose token a request has.

        Raises
        ------
        HttpError
            If the token is missing or wrong.
        """
        reader = self._readers.of(headers.get(b"authorization", b""))
        if reader is not None:
            return reader
        if path in self._open:
            return ANONYMOUS
        raise HttpError(401, "the token is missing or wrong")


def _by_name(pairs: Headers) -> dict[bytes, bytes]:
    """Index headers by name. Repeated headers are joined with a comma."""
    by_name = dict(pairs)
    if len(by_name) == len(pairs):
        return by_name
    return {name: b", ".join(value for other, value in pairs if other == name) for name in by_name}


def _host(header: str) -> str | None:
    """Return the name in a header `Host`, without the port; None if the header is malformed."""
    host = _HOST.fullmatch(header.lower())
    return host["name"] if host else None
