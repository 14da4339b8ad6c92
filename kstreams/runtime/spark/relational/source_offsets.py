"""`SourceOffsets`: the offsets that Spark keeps of the sources of a query, in the order of its plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from kstreams.errors import StateError, TopologyError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.exchange.rows import Offsets, positions_of
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage

NO_OFFSET = "-"
"""Spark's entry for a source that has not read a record yet."""

_OF_FILES = "logOffset"
"""The only key of the offsets of Spark's source of files."""


class SourceOffsets:
    """The entries of the batches of one query. Spark writes an entry before it runs the batch.

    An entry has two lines, and one for each source with the offsets at which the batch ends.

    Parameters
    ----------
    storage : CheckpointStorage
        The checkpoint of the application.
    query : str
        The folder of the query in the checkpoint.
    """

    def __init__(self, storage: CheckpointStorage, query: str) -> None:
        self._storage = storage
        self._folder = f"{query}/offsets"

    def positions(self, batch_id: int) -> dict[TopicPartition, int]:
        """Return the positions at the end of a batch. Raises StateError if Spark's entry cannot be read."""
        name = f"{self._folder}/{batch_id}"
        try:
            sources = list(_sources(self._storage.read(name).decode()))
        except (OSError, ValueError) as error:
            raise StateError(
                f"{self._storage.location_of(name)}, Spark's own entry of the batch, cannot be read: {error}. Restore "
                "the file from a copy, or start anew with --reset."
            ) from error
        offsets: dict[str, dict[str, int]] = {}
        for topic, of_topic in (item for source in sources for item in source.items()):
            offsets.setdefault(topic, {}).update(of_topic)
        return positions_of(offsets)

    def take_up(self, starts: Mapping[TopicPartition, int], *, is_last: bool, has_clocks: bool) -> None:
        """Add the partitions that Spark does not know to the last two entries: nothing of them was read.

        Spark goes on from the last entry, or runs its batch again from the one before. It knows sources by their order.

        Parameters
        ----------
        starts : mapping of TopicPartition to int
            The first offset of each partition that the query reads.
        is_last : bool
            True if the source of an added partition is the last of the plan: the query reads one topic, in one place.
        has_clocks : bool
            True if a source of files stands before each partition.

        Raises
        ------
        TopologyError
            If the new source would stand between others.
        """
        numbers = sorted(int(name) for name in self._storage.names(self._folder) if name.isdigit())
        for number in numbers[-2:]:
            added = sorted(starts.keys() - self.positions(number).keys())
            if added and not is_last:
                raise TopologyError(
                    f"{', '.join(map(str, added))} was added, and Spark cannot add a source between those of a "
                    "query: run with --reset to start anew, or as tasks (spark.kstreams.path=task)."
                )
            if added:
                clock = [NO_OFFSET] if has_clocks else []
                self._append(number, [line for source in added for line in (*clock, _line(source, starts[source]))])

    def _append(self, number: int, lines: list[str]) -> None:
        name = f"{self._folder}/{number}"
        self._storage.write(name, "\n".join([self._storage.read(name).decode().rstrip("\n"), *lines]).encode())
        self._storage.delete([f"{self._folder}/.{number}.crc"])


def _line(source: TopicPartition, offset: int) -> str:
    return json.dumps({source.topic: {str(source.partition): offset}}, separators=(",", ":"))


def _sources(entry: str) -> Iterator[Offsets]:
    """Yield the offsets of each source of topics."""
    for line in entry.strip().splitlines()[2:]:
        if line != NO_OFFSET and _OF_FILES not in (offsets := json.loads(line)):
            yield offsets
