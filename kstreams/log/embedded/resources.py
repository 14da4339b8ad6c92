"""`LogResources`: the parts of an open log that its clients share, such as catalogue, clock and disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.embedded.catalogue.catalogue import Catalogue, Topic
from kstreams.log.embedded.catalogue.transactions import first_open_offset
from kstreams.log.embedded.disk import Disk, refuse_links
from kstreams.log.embedded.segments.partition import Partition


def stable_end(home: LogResources, topic: Topic, number: int, end_offset: int) -> int:
    """Return the last stable offset, where read_committed consumers stop: the first open transaction, else the end.

    Parameters
    ----------
    end_offset : int
        The partition's end, read *before* the call: a transaction that starts in between is after it.
    """
    first_open = first_open_offset(home.catalogue, topic.id, number, home.clock.uptime_ms())
    return end_offset if first_open is None else min(first_open, end_offset)


@dataclass(frozen=True, slots=True)
class LogResources:
    """The shared parts of an open log."""

    folder: Path
    catalogue: Catalogue
    clock: Clock
    durability: str
    disk: Disk
    after_roll: Callable[[Topic], None]
    do_housekeeping: Callable[[], bool]

    def topic_folder(self, topic: Topic) -> Path:
        """Return the folder of a topic; the id distinguishes it from an earlier topic of the same name."""
        return self.folder / "topics" / f"{topic.name}@{topic.id}"

    def partition(self, topic: Topic, number: int) -> Partition:
        """Open one partition of a topic."""
        topic.require(number)
        folder = self.topic_folder(topic)
        refuse_links(folder.parent, folder, folder / str(number))
        return Partition(folder / str(number), TopicPartition(topic.name, number), self.disk)
