"""What the parts of one open log share: folder, catalogue, clock, durability, disk."""

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
    """The last stable offset.

    Parameters
    ----------
    end_offset : int
        The partition's end, read *before* this is called: a transaction that begins in between lies after it.
    """
    first_open = first_open_offset(home.catalogue, topic.id, number, home.clock.uptime_ms())
    return end_offset if first_open is None else min(first_open, end_offset)


@dataclass(frozen=True, slots=True)
class LogResources:
    """An open log's shared parts."""

    folder: Path
    catalogue: Catalogue
    clock: Clock
    durability: str
    disk: Disk
    after_roll: Callable[[Topic], None]
    tend: Callable[[], bool]

    def topic_folder(self, topic: Topic) -> Path:
        """The folder of a topic; its number keeps it apart from an earlier topic of that name."""
        return self.folder / "topics" / f"{topic.name}@{topic.id}"

    def partition(self, topic: Topic, number: int) -> Partition:
        """One partition of a topic, opened."""
        topic.require(number)
        folder = self.topic_folder(topic)
        refuse_links(folder.parent, folder, folder / str(number))
        return Partition(folder / str(number), TopicPartition(topic.name, number), self.disk)
