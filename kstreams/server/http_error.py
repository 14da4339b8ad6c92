"""`HttpError`: an exception that ends a request with an error status. Its reason reveals nothing about the data."""

from __future__ import annotations

import msgspec
from starlette.responses import Response


class HttpError(Exception):
    """An exception that ends a request with an error status.

    Parameters
    ----------
    status : int
        The HTTP status code.
    reason : str
        A sentence for the client.
    retry_after_s : int or None
        The seconds after which the same request may succeed. None if it will not succeed.
    """

    def __init__(self, status: int, reason: str, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    def response(self) -> Response:
        """Return the HTTP response."""
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        elif self.status == 405:
            headers["Allow"] = "GET"
        elif self.status == 413:
            headers["Connection"] = "close"  # the server does not read the body
        return Response(msgspec.json.encode({"error": self.reason}), self.status, headers, "application/json")


def unavailable(reason: str = "the partition is not here now: ask again") -> HttpError:
    """Return the error for a request while tasks move between processes."""
    return HttpError(503, reason, retry_after_s=1)
