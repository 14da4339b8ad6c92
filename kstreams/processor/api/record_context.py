"""`RecordContext`: the place and headers of an input record, for functions that choose a topic or a partition."""

from __future__ import annotations

from typing import NamedTuple

from kstreams.record import Headers


class RecordContext(NamedTuple):
    """The input record that is being processed, for functions that choose a topic or a partition."""

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
