"""The committed offsets of connectors, and their alteration while no task is open, as KIP-875 has it for Kafka Connect.

The positions of a source are records of its topic of positions. A sink keeps its offset in the target, where it stays:
an altered task gets a new identity, for which the target has none, and the offset at which this identity starts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from kstreams.connectors.api import Position
from kstreams.connectors.connector import SinkConnector, SourceConnector
from kstreams.connectors.connectors_topic import ConnectorControl, TaskControl, change_control, new_identity
from kstreams.connectors.positions import read_positions, task_of
from kstreams.errors import ConnectorError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Log, OffsetAndMetadata
from kstreams.log.naming import did_you_mean
from kstreams.log.readable_ends import readable_ends


class CommittedOffsets(Protocol):
    """The committed positions of a source, or offsets of a sink.

    Attributes
    ----------
    positions : dict of str to Position
        By split, or by the number of the partition.
    unit : str
        What a position belongs to: `split` or `partition`.
    lag : int or None
        The number of records that the target of a sink lacks. None for a source.
    """

    positions: dict[str, Position]
    unit: str

    @property
    def lag(self) -> int | None: ...

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield what is known about each split or partition."""
        ...

    def parsed(self, split: str, text: str) -> Position:
        """Return the position that a text stands for. Raises ConnectorError if it cannot be one of this split."""
        ...

    def first(self, split: str) -> Position:
        """Return the position of a new beginning."""
        ...

    def alter(self, positions: Mapping[str, Position]) -> None:
        """Commit positions. No task may be open."""
        ...


def altered_positions(offsets: CommittedOffsets, settings: list[str], resets: list[str]) -> dict[str, Position]:
    """Return the positions that texts describe, by split.

    Parameters
    ----------
    offsets : CommittedOffsets
    settings : list of str
        `SPLIT=POSITION`.
    resets : list of str
        Splits that begin anew.

    Raises
    ------
    ConnectorError
        If a split is not known, or a position does not fit.
    """
    positions: dict[str, Position] = {}
    for setting in settings:
        splits = [split for split in offsets.positions if setting.startswith(f"{split}=")]
        if not splits:
            raise _unknown(offsets, setting.rpartition("=")[0] or setting)
        split = max(splits, key=len)
        positions[split] = offsets.parsed(split, setting[len(split) + 1 :])
    for split in resets:
        if split not in offsets.positions:
            raise _unknown(offsets, split)
        positions[split] = offsets.first(split)
    return positions


def _unknown(offsets: CommittedOffsets, name: str) -> ConnectorError:
    return ConnectorError(
        f"there is no {offsets.unit} {name!r} with a committed position.{did_you_mean(name, offsets.positions)} "
        f"`kstreams connectors offsets APP NAME` has all"
    )


class SourcePositions:
    """See `CommittedOffsets`.

    Parameters
    ----------
    log : Log
    connector : SourceConnector
    """

    unit = "split"
    lag = None

    def __init__(self, log: Log, connector: SourceConnector) -> None:
        self._log = log
        self._connector = connector
        self._topic = connector.positions_topic
        with log.admin() as admin:
            existing = admin.topics()
        self._tasks = existing[self._topic].partitions if self._topic in existing else 0
        positions: dict[str, Position] = {}
        for number in range(self._tasks):
            positions |= read_positions(log, TopicPartition(self._topic, number))
        self.positions = dict(sorted(positions.items()))

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield split, task and position."""
        for split, position in self.positions.items():
            yield {"split": split, "task": task_of(split, self._tasks), "position": position}

    def parsed(self, split: str, text: str) -> Position:
        """Return a JSON value, or the text itself if positions of the split are texts."""
        present = self.positions[split]
        try:
            position = decode_json(text.encode())
        except msgspec.DecodeError:
            position = text
        if isinstance(present, str) and not isinstance(position, str):
            position = text
        if _form(position) != _form(present):
            raise ConnectorError(
                f"{text} is no position of {split}: the present one is {msgspec.json.encode(present).decode()}, so "
                "write JSON of the same form"
            )
        return position

    def first(self, split: str) -> Position:
        """Return None: the split is read from its beginning."""
        return None

    def alter(self, positions: Mapping[str, Position]) -> None:
        """Commit positions, those of a task at once.

        The producer takes over the transactional id of the task, so that a task which is still open can commit nothing.
        """
        splits = defaultdict[int, list[str]](list)
        for split in positions:
            splits[task_of(split, self._tasks)].append(split)
        for number, names in splits.items():
            with self._log.producer({"transactional.id": self._connector.transactional_id(number)}) as producer:
                producer.begin_transaction()
                for split in names:
                    position = positions[split]
                    value = None if position is None else msgspec.json.encode(position)
                    producer.send(self._topic, split.encode(), value, partition=number)
                producer.commit_transaction()


class SinkOffsets:
    """See `CommittedOffsets`. The group of the sink has a copy of the offsets in the target.

    Parameters
    ----------
    log : Log
    connector : SinkConnector
    """

    unit = "partition"

    def __init__(self, log: Log, connector: SinkConnector) -> None:
        self._log = log
        self._connector = connector
        topic = connector.topic.name
        with log.admin() as admin:
            existing = admin.topics()
            count = existing[topic].partitions if topic in existing else 0
            self._sources = [TopicPartition(topic, number) for number in range(count)]
            self._begins = admin.beginning_offsets(self._sources)
            self._ends = admin.end_offsets(self._sources)
            committed = admin.committed(connector.id, self._sources)
        self._committed = {source: at.offset for source, at in committed.items()}
        self.positions = {str(source.partition): self._committed.get(source) for source in self._sources}

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield partition, committed offset, end and lag."""
        lags = self._lags()
        for source in self._sources:
            yield {
                "partition": source.partition,
                "committed": self._committed.get(source),
                "end": self._ends[source],
                "lag": lags[source],
            }

    @property
    def lag(self) -> int:
        """The number of records that the target lacks."""
        return sum(self._lags().values())

    def parsed(self, split: str, text: str) -> Position:
        """Return an offset that the partition has, or its end."""
        source = self._sources[int(split)]
        begin = self._begins[source]
        end = self._ends[source]
        if not text.isdecimal() or not begin <= int(text) <= end:
            raise ConnectorError(f"{text} is no offset of {source}: its records are those from {begin} to before {end}")
        return int(text)

    def first(self, split: str) -> Position:
        """Return the first offset of the partition that is not deleted."""
        return self._begins[self._sources[int(split)]]

    def alter(self, positions: Mapping[str, Position]) -> None:
        """Let partitions start at other offsets under new identities."""
        name = self._connector.name
        offsets = {self._sources[int(split)]: int(position) for split, position in positions.items()}

        def altered(control: ConnectorControl) -> ConnectorControl:
            for source, offset in offsets.items():
                restarts = control.task(source.partition).restarts
                task = TaskControl(restarts, new_identity(self._connector.group, name), offset)
                control = control.with_task(source.partition, task)
            return control

        change_control(self._log, self._connector.group, name, altered)
        with self._log.admin() as admin:
            admin.commit(self._connector.id, {source: OffsetAndMetadata(at) for source, at in offsets.items()})

    def _lags(self) -> dict[TopicPartition, int]:
        after = {source: self._committed.get(source, self._begins[source]) for source in self._sources}
        readable = readable_ends(self._log, after, self._ends)
        return {source: max(0, readable[source] - offset) for source, offset in after.items()}


def _form(position: Position) -> object:
    """Return what positions of a split have in common: the type, and the names of fields."""
    if isinstance(position, dict):
        return sorted(position)
    return float if type(position) is int else type(position)
