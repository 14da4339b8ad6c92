"""`Limits`: how much the server does for those who ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of requests.

    Parameters
    ----------
    concurrency : int
        Questions that are answered at a time; more are told to come again.
    connections : int
        Open at a time. A further one takes the place of one that has sent no request yet, else of the one that is idle
        for longest; where all are busy, it is told that there are too many.
    watches : int
        Watched questions at a time.
    page_rows : int
        Greatest `limit` of a page.
    target_bytes : int
        Longest path and query.
    header_bytes : int
        Longest headers of a request together.
    deadline_s : float
        Longest time for an answer.
    header_s : float
        From when a connection is there, or its next request begins, until the headers of the request are.
    idle_s : int
        For how long a connection is kept between two requests.
    write_s : float
        For how long an event or a part of an answer waits for its reader, who is then cut off.
    silence_s : float
        After which a watch without news sends a comment, so that nobody on the way takes its connection for dead.
    look_s : float
        Shortest time between two looks at what is watched: after a commit here, or where another instance commits.
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
    silence_s: float = 15.0
    look_s: float = 0.1
