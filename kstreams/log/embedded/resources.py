"""What the parts of one open log share: folder, catalogue, clock, durability, disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kstreams.batch import TopicPartition
from kstreams.clock import Clock
from kstreams.log.embedded.catalogue.catalogue import Catalogue, Topic
from kstreams.log.embedded.disk import Disk, refuse_links
from kstreams.log.embedded.segments.partition import Partition


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
