"""The interface of every connector: `Source` and `SourceReader`, `Sink` and `SinkWriter`.

A source writes records and the position after them to topics in one transaction. A sink commits rows and the offset
after them in one act of the target. So neither needs to know what happened before a crash: a source is opened at the
position that its topic holds, and a topic is read from the offset that the sink holds.

`tests/connectors/contract` states the invariants; `kstreams.testing.connectors` runs them on any connector.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa

Position: TypeAlias = Any
"""A place in a split, as a value that JSON can hold, such as a number of rows or the text of a log sequence number."""

Offsets: TypeAlias = "np.typing.NDArray[np.int64]"


class UnreadableRow(NamedTuple):
    """A row of a source that does not fit its types. It becomes a dead letter.

    Parameters
    ----------
    content : bytes
        The row as the other system has it. A row without a text of its own is written as JSON.
    position : Position
        Where the row is in its split, such as its first byte, or the position after the rows that were read with it.
    error : Exception
    """

    content: bytes
    position: Position
    error: Exception


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Consecutive records of a split, and the position after them.

    Parameters
    ----------
    values : pyarrow array, length n
        A struct with the fields of the source's type of values, or a column of that type if it is no class. For a
        type without Arrow type, such as dict, also a binary column of JSON. A null deletes its key.
    position : Position
        Where the split continues after the last record. A batch without records moves the position only,
        or says that the split is not yet at its end: a bounded run ends when all splits return None.
    keys : pyarrow array, length n, or None
        A column of the source's type of keys. None if the records have no keys.
    timestamps : pyarrow int64 or timestamp array, length n, or None
        Event times; int64 are milliseconds since the epoch. None for the time of reading.
    is_end : bool
        True if nothing will ever follow in the split. Its reader is closed after the commit.
    unreadable : sequence of UnreadableRow
        Rows between these records that do not fit the types. They are not in the columns.
    """

    values: pa.Array
    position: Position
    keys: pa.Array | None = None
    timestamps: pa.Array | None = None
    is_end: bool = False
    unreadable: Sequence[UnreadableRow] = ()


class SourceReader(Protocol):
    """Reads one split from a position. One thread uses it."""

    def read(self) -> SourceBatch | None:
        """Return the next records, at most some ten thousand, or None if there are none now.

        `read` waits for less than a second. It is called again after None.

        Raises
        ------
        ConnectorUnavailableError, OSError
            If the other system does not answer. The split is opened again at its last committed position.
        """
        ...

    def committed(self, position: Position) -> None:
        """Note that everything before a position is durable in the topic, so that the other system may discard it."""
        ...

    def close(self) -> None:
        """Release connections and files."""
        ...


class Source:
    """A system whose data become records. Subclasses say which splits there are, and open each of them.

    A source only describes: it connects to nothing before `splits` or `open` is called, and it can be pickled.
    Kafka Connect: `SourceConnector`; a split and a position are its source partition and source offset.

    Parameters
    ----------
    key, value : type
        The types of keys and values. Values are classes with fields, plain types, or dicts.
    tasks : int
        The greatest number of processes that share the splits.
    """

    topic = ""
    """The topic that the source fills. Empty for an internal topic of the application."""

    partitions: int | None = None
    """The number of partitions of the topic if it does not exist. None for that of topics with which it is joined."""

    is_finished_in_turn = False
    """True if a task reads one split to its end before the next one, as files. Else it reads from all by turns."""

    commit_interval_ms: int = 500
    """How long records wait at most for a commit. Shorter if the other system waits for `committed`."""

    has_deletes: bool = True
    """False if no value is ever null. Connect files then transform whole columns."""

    def __init__(self, *, key: Any = bytes, value: Any = dict, tasks: int = 1) -> None:
        self.key = key
        self.value = value
        self.tasks = tasks

    def to_topic(self, topic: str, partitions: int | None = None) -> Self:
        """Return the same source, which fills a topic that others may read too.

        Parameters
        ----------
        topic : str
            Created if it does not exist.
        partitions : int, optional
            The number of partitions of a new topic.
        """
        source = copy(self)
        source.topic = topic
        source.partitions = partitions
        return source

    def splits(self) -> Iterable[str]:
        """Return the names of the splits that exist now. It is called repeatedly, since there may be new ones."""
        raise NotImplementedError

    def open(self, split: str, position: Position | None) -> SourceReader:
        """Return a reader of a split from a position on. None is the beginning."""
        raise NotImplementedError


class RefusedRow(NamedTuple):
    """A row that the target refuses, such as text that is too long for its column."""

    offset: int
    error: Exception


@dataclass(frozen=True, slots=True)
class SinkBatch:
    """Consecutive records of one topic partition, decoded.

    Parameters
    ----------
    partition : int
    offsets : numpy int64 array, shape (n,)
        Ascending, with gaps.
    keys, values : pyarrow array, length n
        Classes and dicts are structs. A null value deletes its key.
    timestamps : pyarrow int64 array, length n
        Milliseconds since the epoch.
    """

    partition: int
    offsets: Offsets
    keys: pa.Array
    values: pa.Array
    timestamps: pa.Array

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class SinkTask:
    """The part of a connector that writes one topic partition.

    Parameters
    ----------
    connector : str
        The name under which the target keeps the offset. It differs after `kstreams reset`, which starts anew.
    topic : str
    partition : int
    value_type : pyarrow.DataType
        The type of `SinkBatch.values`. `pa.null()` if only the records determine it.
    """

    connector: str
    topic: str
    partition: int
    value_type: pa.DataType = field(default_factory=pa.null)

    @property
    def id(self) -> str:
        """The name of the task: of the connector and the partition."""
        return f"{self.connector}-{self.partition}"


class SinkWriter(Protocol):
    """Writes one topic partition to the target.

    All writers of a connector in a process share a thread, in which `commit` follows `flush` at once. A writer for a
    target with a single writer, such as SQLite, therefore keeps rows in memory until `flush`. After an error, the
    writer is closed without a commit, and another one is opened at the offset that the target has.
    """

    def next_offset(self) -> int | None:
        """Return the offset after the last committed row, as the target holds it. None if it holds none.

        It is called once, before all other methods. A sink that is `at_least_once` returns None: the group of the
        connector then knows the offset.
        """
        ...

    def write(self, batch: SinkBatch) -> None:
        """Take rows. They are not visible to readers of the target before `commit`, unless the sink is at least once.

        Raises
        ------
        ConnectorUnavailableError, OSError
            If the target does not answer. The rows since the last commit are written again.
        """
        ...

    def flush(self) -> Sequence[RefusedRow]:
        """Bring all rows so far to the target, and return the ones that it refuses. The others stay in this commit."""
        ...

    def commit(self, next_offset: int) -> None:
        """Make all rows visible, and the offset after them durable, in one act.

        Raises
        ------
        FencedError
            If another writer of the same task has committed since this one was opened. Nothing was committed.
        """
        ...

    def close(self) -> None:
        """Discard what is not committed, and release connections and files."""
        ...


class Sink:
    """A system that takes records. It only describes, as `Source` does. Kafka Connect: `SinkConnector`."""

    at_least_once: bool = False
    """True if the target cannot keep an offset with the rows. A crash then repeats rows."""

    commit_interval_ms: int = 500
    """How long rows of a partition wait at most for a commit. Longer for a target whose commits cost much."""

    commit_rows: int = 100_000
    """The number of rows of a partition after which they are committed earlier. They are held in memory until then."""

    commit_bytes: int = 1 << 30
    """The same for the bytes of keys and values in the topic."""

    def open(self, task: SinkTask) -> SinkWriter:
        """Return a writer for a topic partition. An open writer of the same task elsewhere can no longer commit."""
        raise NotImplementedError
