"""`Guard`: lets through only requests that are addressed to this server, are small, and bring a token."""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kstreams.server.limits import Limits
from kstreams.server.refusal import Refusal
from kstreams.server.web.readers import NOBODY, Reader, Readers


def route_path(scope: Scope) -> str:
    """The path without that of the mount, and of a proxy in front, whether that takes its own away or not.

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
"""Where a scope has who asks."""

ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class Guard:
    """Stands before the router, so that nobody without a token learns which routes and stores there are.

    Parameters
    ----------
    app : ASGIApp
    readers : Readers
    hosts : collection of str
        What `Host` may name, without the port: a page of another site that had its own name resolved to this machine
        would send that name.
    open_paths : collection of str
        Answered without a token.
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
                own = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(header for header in ALWAYS if header[0] not in own)]
            await send(message)

        if scope["type"] != "http":
            return
        try:
            headers = self.checked(scope["headers"], len(scope.get("raw_path") or b"") + len(scope["query_string"]))
            scope[READER] = self.reader(headers, route_path(scope))
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def checked(self, headers: Headers, target_bytes: int) -> dict[bytes, bytes]:
        """Headers by name.

        Raises
        ------
        Refusal
            When the request is for another server, too large, or has a body.
        """
        by_name = _by_name(headers)
        if _host(by_name.get(b"host", b"").decode("latin-1")) not in self._hosts:
            raise Refusal(403, "this server does not go by that name")
        if target_bytes > self._limits.target_bytes:
            raise Refusal(414, "the address is too long")
        if sum(map(len, by_name)) + sum(map(len, by_name.values())) > self._limits.header_bytes:
            raise Refusal(431, "the headers are too long")
        if by_name.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in by_name:
            raise Refusal(413, "requests have no body here")
        return by_name

    def reader(self, headers: dict[bytes, bytes], path: str) -> Reader:
        """Who asks.

        Raises
        ------
        Refusal
            When the token is missing or wrong.
        """
        reader = self._readers.of(headers.get(b"authorization", b""))
        if reader is not None:
            return reader
        if path in self._open:
            return NOBODY
        raise Refusal(401, "the token is missing or wrong")


def _by_name(pairs: Headers) -> dict[bytes, bytes]:
    """By name; those that come several times as one, so that nothing of them is passed over."""
    by_name = dict(pairs)
    if len(by_name) == len(pairs):
        return by_name
    return {name: b", ".join(value for other, value in pairs if other == name) for name in by_name}


def _host(header: str) -> str | None:
    """The name in a `Host` header, without the port; None where the header is no `host` or `host:port`."""
    host = _HOST.fullmatch(header.lower())
    return host["name"] if host else None
