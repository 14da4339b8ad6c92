"""`Limits`: the bounds of requests to the query server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of requests.

    Parameters
    ----------
    concurrency : int
        Requests that are answered at a time. A further request gets the status 503.
    connections : int
        Open connections. A further connection replaces one that has sent no request yet, else the one that is idle for
        the longest time. If all connections are busy, it gets the status 503.
    watches : int
        Watches at a time.
    page_rows : int
        The greatest `limit` of a page.
    target_bytes : int
        Length of the path and the query string together.
    header_bytes : int
        Length of all headers of a request together.
    deadline_s : float
        The longest time for an answer.
    header_s : float
        The longest time from the start of a connection, or of its next request, to the end of the headers.
    idle_s : int
        The longest time between two requests on a connection, after which it is closed.
    write_s : float
        The longest time that an event or a part of an answer waits for the client. The connection is then closed.
    keep_alive_s : float
        The time after which a watch without events sends a comment, so that no proxy closes its connection.
    poll_interval_s : float
        The shortest time between two reads of a watch.
    """

    concurrency: int = 16
    connections: int = 512
    watches: int = 64
    page_rows: int = 1_000
    target_bytes: int = 8_192
    header_bytes: int = 16_384
    deadline_s: float = 10.0
    header_s: float = 10.0
    idle_s: int = 30
    write_s: float = 5.0
    keep_alive_s: float = 15.0
    poll_interval_s: float = 0.1
