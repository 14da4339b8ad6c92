"""The embedded log's Consumer: assigned partitions, their positions, and waiting for more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import LogError, UnknownTopicError
from kstreams.log.api import Span
from kstreams.log.embedded.catalogue.transactions import TransactionState, transaction_state
from kstreams.log.embedded.resources import LogResources
from kstreams.log.embedded.segments.reader import PartitionReader
from kstreams.log.embedded.stable_end import stable_end
from kstreams.log.settings import Setting, choice, read_settings

CONSUMER_SETTINGS = {
    "isolation.level": Setting("read_committed", choice("read_committed", "read_uncommitted")),
    "auto.offset.reset": Setting("earliest", choice("earliest", "latest", "none")),
}
_MOST_FINISHED = 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01  # seconds: an idle reader looks a hundred times a second


class EmbeddedConsumer:
    """See `kstreams.log.api.Consumer`.

    Parameters
    ----------
    home : LogResources
    config : mapping or None
        `isolation.level` and `auto.offset.reset` (where to go on when the position is no longer in the log).
    """

    def __init__(self, home: LogResources, config: Mapping[str, Any] | None = None) -> None:
        self._home = home
        self._settings = read_settings("consumer", CONSUMER_SETTINGS, config)
        self._readers: dict[TopicPartition, PartitionReader] = {}
        self._paused: set[TopicPartition] = set()
        self._finished: dict[int, TransactionState] = {}
        self._failure: LogError | None = None
        self._turn = 0

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these; new ones start at the beginning of the log."""
        wanted = [TopicPartition(*source) for source in partitions]
        kept = {source: reader for source, reader in self._readers.items() if not reader.partition.is_deleted()}
        opened = {source: kept.get(source) or self._open(source) for source in wanted}
        for source, reader in self._readers.items():
            if opened.get(source) is not reader:
                reader.close()
        self._paused &= opened.keys()
        self._readers = opened

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self._readers)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from `offset`."""
        self._failure = None
        if offset < 0:
            raise LogError(f"An offset is at least 0, not {offset}.")
        self._reader(partition).seek(offset)

    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to the first record that is there; of all assigned partitions when none is named."""
        for source in partitions or self._readers:
            reader = self._reader(source)
            reader.seek(reader.partition.head().start_offset)

    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Go to where the next record will be; of all assigned partitions when none is named."""
        for source in partitions or self._readers:
            self._reader(source).seek(self._end(source))

    def seek_to_time(self, partition: TopicPartition, timestamp_ms: int) -> None:
        """Go to the first record whose timestamp is at or after `timestamp_ms`, or to the end if there is none."""
        reader, end = self._reader(partition), self._end(partition)
        found = reader.offset_at_time(timestamp_ms)
        reader.seek(end if found is None else min(found, end))

    def position(self, partition: TopicPartition) -> int:
        """Offset of the next record that `poll` would look at."""
        return self._reader(partition).position

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """What there is, at most `max_records` rows together; waits up to `timeout` seconds when there is nothing.

        Raises
        ------
        CorruptLogError
            When the next frame is damaged; names the file, the place and the offset.
        """
        pause = _FIRST_PAUSE
        while not (batches := self._collect(max_records)) and timeout > 0:
            self._home.clock.sleep(min(pause, timeout))
            timeout -= pause
            pause = min(pause * 2, _LONGEST_PAUSE)
        return batches

    def skim(self, partition: TopicPartition, end: int) -> Span | None:
        """The next records before `end` that lie together: a frame, or the part of one that lies there."""
        return self._reader(partition).skim(end)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` pass over these until `resume`."""
        self._paused.update(self._reader(source).partition.source for source in partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Let `poll` read these again."""
        self._paused.difference_update(partitions)

    def close(self) -> None:
        """Release the files; batches that were polled stay valid."""
        self.assign([])

    def __enter__(self) -> EmbeddedConsumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _collect(self, max_records: int) -> list[Batch]:
        self._raise_failure()
        # Another partition has the first turn at every poll, so a full one does not starve the others.
        active = [source for source in self._readers if source not in self._paused]
        self._turn += 1
        batches: list[Batch] = []
        for i in range(len(active)):
            reader = self._readers[active[(i + self._turn) % len(active)]]
            try:
                found = reader.read(max_records)
            except LogError as error:
                self._failure = error  # at the next poll, when what others gave in this one was handed over
                break
            batches += found
            max_records -= sum(map(len, found))
            if max_records <= 0:
                break
        if not batches:
            self._raise_failure()
            self._check_deleted()
        return batches

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _check_deleted(self) -> None:
        for source, reader in self._readers.items():
            if reader.partition.is_deleted():
                raise UnknownTopicError(f"The topic {source.topic!r} was deleted while it was read.")

    def _open(self, source: TopicPartition) -> PartitionReader:
        partition = self._home.partition(self._home.catalogue.topic(source.topic), source.partition)
        committed = self._settings["isolation.level"] == "read_committed"
        reader = PartitionReader(partition, self._state if committed else None, self._settings["auto.offset.reset"])
        reader.seek(partition.head().start_offset)
        return reader

    def _reader(self, source: TopicPartition) -> PartitionReader:
        try:
            return self._readers[source]
        except KeyError:
            raise LogError(f"{TopicPartition(*source)} is not assigned to this consumer: assign it first.") from None

    def _end(self, source: TopicPartition) -> int:
        end = self._reader(source).partition.head().end_offset
        if self._settings["isolation.level"] == "read_uncommitted":
            return end
        return stable_end(self._home, self._home.catalogue.topic(source.topic), source.partition, end)

    def _state(self, transaction: int) -> TransactionState:
        known = self._finished.get(transaction)
        if known is None:
            known = transaction_state(self._home.catalogue, transaction, self._home.clock.now_ms())
            if known is not TransactionState.OPEN:
                if len(self._finished) >= _MOST_FINISHED:
                    self._finished.clear()
                self._finished[transaction] = known
        return known
