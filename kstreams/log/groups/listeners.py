"""Who is told what a group gives a member and takes from it: the consumer that reads, and the user's listeners."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from kstreams.batch import TopicPartition
from kstreams.log.api import PartitionsListener


class Reading(Protocol):
    """What a membership does to the consumer that reads."""

    def assignment(self) -> frozenset[TopicPartition]: ...
    def take_over(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these: those kept from where they are, new ones from where the group is."""
        ...


class Listeners(NamedTuple):
    """What the user wants to be told of; see `kstreams.log.api.GroupConsumer.subscribe`."""

    assigned: PartitionsListener | None = None
    revoked: PartitionsListener | None = None
    lost: PartitionsListener | None = None
