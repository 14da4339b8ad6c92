"""Where a read_committed reader of a partition stops: the first open transaction, else the end."""

from __future__ import annotations

from kstreams.log.embedded.catalogue.catalogue import Topic
from kstreams.log.embedded.catalogue.transactions import first_open_offset
from kstreams.log.embedded.resources import LogResources


def stable_end(home: LogResources, topic: Topic, number: int, end_offset: int) -> int:
    """The last stable offset.

    Parameters
    ----------
    end_offset : int
        The partition's end, read *before* this is called: a transaction that begins in between lies after it.
    """
    first_open = first_open_offset(home.catalogue, topic.id, number, home.clock.uptime_ms())
    return end_offset if first_open is None else min(first_open, end_offset)
