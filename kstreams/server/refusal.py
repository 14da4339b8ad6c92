"""`Refusal`: why a request gets no answer, in words that tell nothing of the data."""

from __future__ import annotations

import msgspec
from starlette.responses import Response


class Refusal(Exception):
    """Ends a request with a status.

    Parameters
    ----------
    status : int
        Of HTTP.
    reason : str
        A sentence for whoever asked.
    retry_after_s : int or None
        After how many seconds the same request may succeed; None: it will not.
    """

    def __init__(self, status: int, reason: str, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    def response(self) -> Response:
        """The answer that says so."""
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        elif self.status == 405:
            headers["Allow"] = "GET"
        elif self.status == 413:
            headers["Connection"] = "close"  # whatever the body is, nobody reads it
        return Response(msgspec.json.encode({"error": self.reason}), self.status, headers, "application/json")


def moving(reason: str = "the partition is not here now: ask again") -> Refusal:
    """What is asked while tasks move from process to process."""
    return Refusal(503, reason, retry_after_s=1)
