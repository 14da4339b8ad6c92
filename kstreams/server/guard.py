"""`Guard`: lets through only requests that are addressed to this server, are small, and bring the token."""

from __future__ import annotations

import hmac
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kstreams.server.limits import Limits
from kstreams.server.refusal import Refusal

_ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
)


class Guard:
    """Stands before the router, so that nobody without the token learns which routes and stores there are.

    Parameters
    ----------
    app : ASGIApp
    token : str
    hosts : collection of str
        What `Host` may name, without the port: a page of another site that had its own name resolved to this machine
        would send that name.
    open_paths : collection of str
        Answered without the token.
    limits : Limits
    """

    def __init__(
        self, app: ASGIApp, token: str, hosts: Collection[str], open_paths: Collection[str], limits: Limits
    ) -> None:
        self._app, self._token, self._limits = app, token.encode(), limits
        self._hosts, self._open = frozenset(host.lower() for host in hosts), frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_ALWAYS]
            await send(message)

        if scope["type"] != "http":
            return
        try:
            self._check(scope)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if _host(headers.get("host", "")) not in self._hosts:
            raise Refusal(403, "this server does not go by that name")
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self._limits.target_bytes:
            raise Refusal(414, "the address is too long")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > self._limits.header_bytes:
            raise Refusal(431, "the headers are too long")
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            raise Refusal(413, "requests have no body here")
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in self._open and not self._brings_token(headers):
            raise Refusal(401, "the token is missing or wrong")

    def _brings_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        is_right = hmac.compare_digest(given.strip().encode(), self._token)
        return is_right and scheme.lower() == "bearer"


def _host(header: str) -> str:
    """The name in a `Host` header, without the port."""
    host = header.lower()
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
