"""`OutputBuffers`: the output of a task, buffered by topic, encoded in bulk and handed to a `Collector`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from operator import index
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.errors import LogError, ProcessingError, RegistryError, SerdeError
from kstreams.kernel.batch import Integers, headers_column
from kstreams.kernel.source_line import operator_at
from kstreams.log.partitioning import partitions_of
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.context.chain import Statement
from kstreams.processor.context.current_record import CurrentRecord, Origin
from kstreams.processor.context.encoded_rows import BY_KEY, Collector, EncodedRows, Partitions, send_partitioned
from kstreams.processor.context.failures import Failures
from kstreams.processor.topology.nodes import SinkNode
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers, ProducerRecord
from kstreams.serdes import BytesSerde, Serde, SessionWindowedSerde, TimeWindowedSerde
from kstreams.serdes.base import failing_rows

AT_FLUSH = -2
"""`CurrentRecord.reached` while a flush forwards buffered records."""

AT_END = 1 << 62
"""A time later than any valid one, from which on the records of the end of input are sorted."""

_TURN = 1 << 52
_MOST_TURNS = 1 << 10


def at_end(turn: int) -> int:
    """Return `CurrentRecord.reached` at the end of input of a sub-topology.

    Sub-topologies end in turn, each after all records that follow from the ends of the sub-topologies before it.
    """
    return AT_FLUSH - 1 - min(turn, _MOST_TURNS - 1)


class WriteOrder(NamedTuple):
    """The stream times of written rows, and their ranks if the topic has ranks."""

    times: pa.Array
    ranks: pa.Array | None


class WrittenTimes:
    """The stream times of the rows of one task, by which rows of several tasks are sorted in a topic.

    The time of a row is the stream time of its task when the task wrote it: the running maximum of the times of the
    records that the task had read. So it does not depend on filters before the topic, nor on the batches of the input.
    For a record that another task has written, this time counts, not the timestamp: output that follows from a source
    record has the time of the source record, across any number of repartition topics, and the input up to some time
    determines each topic up to the same time. Rows that were buffered have their own timestamps: those of a flush are
    sorted among all rows, those of the end of input come after all rows. The rows of one task keep their order.

    Rows of equal times are sorted by their ranks, where these matter. Rows that were buffered have the rank of the row
    before them.

    Examples
    --------
    >>> times = WrittenTimes()
    >>> times.of_rows("t", pa.array([5, 3, 9]), {1: 5}, None).times.to_pylist()
    [5, 5, 9]
    >>> times.of_rows("t", pa.array([4, 12, 8]), dict.fromkeys(range(3), AT_FLUSH), None).times.to_pylist()
    [9, 12, 12]
    >>> times.of_columns("r", np.array([5, 5, 4, 9]), np.array([1, 7, 0, 2])).ranks.to_pylist()
    [1, 7, 7, 2]
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, int]] = {}

    def of_rows(
        self, topic: str, timestamps: pa.Array, reached: Mapping[int, int], ranks: Sequence[int] | None
    ) -> WriteOrder:
        """Return the times and ranks of the next rows of a topic.

        Parameters
        ----------
        topic : str
        timestamps : pyarrow int64 array, length n
            The timestamps of the rows.
        reached : mapping of int to int
            By row: `CurrentRecord.reached` when it was written, if it differs from the timestamp.
        ranks : sequence of int or None
            `CurrentRecord.rank` when each row was written, if the topic has ranks.
        """
        row_ranks = None if ranks is None else np.array(ranks, np.int64)
        times = np.array(timestamps)
        if reached:
            rows = np.fromiter(reached.keys(), np.int64, len(reached))
            task_times = np.fromiter(reached.values(), np.int64, len(reached))
            own = np.maximum(times[rows], 0)
            ends = AT_END + (AT_FLUSH - 1 - task_times) * _TURN + np.minimum(own, _TURN - 1)
            times[rows] = np.where(task_times == AT_FLUSH, own, np.where(task_times < AT_FLUSH, ends, task_times))
            if row_ranks is not None:
                row_ranks[rows[task_times <= AT_FLUSH]] = 0
        return self.of_columns(topic, times, row_ranks)

    def of_columns(self, topic: str, times: Integers, ranks: Integers | None) -> WriteOrder:
        """Return the times and ranks of rows, given the stream time of the task and the rank at each of them."""
        before_ms, rank_before = self._latest.get(topic, (-1, 0))
        latest = np.maximum(np.maximum.accumulate(times), before_ms)
        last_rank = 0
        if ranks is not None:
            ranks = highest_ranks(latest, np.where(times < latest, 0, ranks), before_ms, rank_before)
            last_rank = int(ranks[-1])
        self._latest[topic] = int(latest[-1]), last_rank
        return WriteOrder(pa.array(latest), None if ranks is None else pa.array(ranks))

    def restart(self) -> None:
        """Start again after a commit: later rows may come from the next flush, and have their own times."""
        self._latest.clear()


def highest_ranks(times: Integers, ranks: Integers, before_ms: int, rank_before: int) -> Integers:
    """Return the highest rank so far of the rows with the same time, in order of time.

    Parameters
    ----------
    times, ranks : numpy int64 array, shape (n,)
    before_ms, rank_before : int
        Time and rank of the row before these.

    Examples
    --------
    >>> highest_ranks(np.array([5, 5, 5, 9]), np.array([1, 8, 2, 3]), 5, 4).tolist()
    [4, 8, 8, 3]
    """
    highest = ranks.copy()
    if times[0] == before_ms:
        highest[0] = max(int(highest[0]), rank_before)
    if not bool(np.any((np.diff(times) == 0) & (np.diff(highest) < 0))):
        return highest
    starts = np.flatnonzero(np.diff(times, prepend=times[0] - 1))
    for start, stop in pairwise([*starts.tolist(), len(times)]):
        np.maximum.accumulate(highest[start:stop], out=highest[start:stop])
    return highest


Side: TypeAlias = Literal["key", "value"]

_NOWHERE: Origin = (None, 0, ())


class SinkRows:
    """Consecutive records of one sink. Plain lists, because many small objects slow down the garbage collection."""

    __slots__ = ("headers", "keys", "origins", "ranks", "reached", "sink", "timestamps", "values")

    def __init__(self, sink: SinkNode) -> None:
        self.sink = sink
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Origin] = {}  # by row, with the input record of the row
        self.origins: list[Origin] = []  # the input record of every row, if a handler may need it
        self.reached: dict[int, int] = {}  # by row: `CurrentRecord.reached`, if it differs from the timestamp
        self.ranks: list[int] = []  # `CurrentRecord.rank` of every row, if the topic has ranks

    def headers_of_rows(self) -> list[Headers]:
        """Return the headers of every row; an empty list if no row has headers."""
        return [self.headers.get(row, _NOWHERE)[2] for row in range(len(self.keys))] if self.headers else []

    def origin(self, row: int) -> Origin:
        """Return the input record of a row, if it is known."""
        return self.origins[row] if self.origins else self.headers.get(row, _NOWHERE)

    def record(self, row: int) -> tuple[object, object, int, Headers]:
        """Return key, value, timestamp and headers of one row."""
        return self.keys[row], self.values[row], self.timestamps[row], self.headers.get(row, _NOWHERE)[2]

    def keep(self, rows: list[int]) -> None:
        """Keep only these rows, each as often as it occurs. The lists and dicts stay the same objects."""
        by_row: tuple[dict[int, Any], ...] = (self.headers, self.reached)
        for values in by_row:
            moved_values = {new: values[old] for new, old in enumerate(rows) if old in values}
            values.clear()
            values.update(moved_values)
        columns: tuple[list[Any], ...] = (self.keys, self.values, self.timestamps, self.origins, self.ranks)
        for column in filter(None, columns):
            column[:] = [column[row] for row in rows]

    def clear(self) -> None:
        """Remove all rows."""
        self.keys.clear()
        self.values.clear()
        self.timestamps.clear()
        self.headers.clear()
        self.origins.clear()
        self.reached.clear()
        self.ranks.clear()


def encoded(rows: SinkRows, topic: str) -> EncodedRows:
    """Encode rows."""
    return unframed(
        rows.sink,
        EncodedRows(
            _encoded_side(rows, topic, "key", rows.sink.key, rows.keys),
            _encoded_side(rows, topic, "value", rows.sink.value, rows.values),
            pa.array(rows.timestamps, pa.int64()),
            headers_column(rows.headers_of_rows()),
        ),
    )


def unframed(sink: SinkNode, rows: EncodedRows) -> EncodedRows:
    """Move the parts of encoded rows that the serdes of a sink write in headers."""
    keys, headers = (sink.key or BytesSerde()).unframed(rows.keys, rows.headers)
    values, headers = (sink.value or BytesSerde()).unframed(rows.values, headers)
    return rows._replace(keys=keys, values=values, headers=headers)


def _encoded_side(rows: SinkRows, topic: str, side: Side, serde: Serde | None, column: list[Any]) -> pa.Array:
    serde = serde or BytesSerde()
    try:
        return serde.encode_rows(column)
    except RegistryError:
        raise  # not the fault of a record, which a handler must not drop for it
    except Exception as error:
        for _, failure in unencodable(rows, topic, side):
            raise failure from error
        raise SerdeError(f"{rows.sink.name} cannot encode the {side}s for topic {topic}: {error}") from error


def unencodable(rows: SinkRows, topic: str, side: Side) -> Iterator[tuple[int, SerdeError]]:
    """Yield the rows whose key or value does not encode, with the error."""
    serde, column = (rows.sink.key, rows.keys) if side == "key" else (rows.sink.value, rows.values)
    sink = operator_at(rows.sink.name, rows.sink.declared_at)
    for row, cause in failing_rows((serde or BytesSerde()).encode_rows, column):
        yield (
            row,
            SerdeError(
                f"{sink} cannot write {described(rows, row)} to topic {topic}: "
                f"{serde or BytesSerde()} does not take its {side}, a {type(column[row]).__name__}: {cause}. "
                f"Declare the right type with {side}=."
            ),
        )


def unwritable(rows: SinkRows) -> Iterator[tuple[int, str]]:
    """Yield the rows that no topic can hold, with the reason."""
    for row, cause in failing_rows(lambda times: pa.array(times, pa.int64()), rows.timestamps):
        yield row, f"has a time that does not fit into 64 bits ({cause}): times are milliseconds since 1970."
    for row, cause in failing_rows(headers_column, rows.headers_of_rows()):
        yield row, f"has headers that cannot be written ({cause}): a header is a text and bytes or None."


def described(rows: SinkRows, row: int) -> str:
    """Describe a row for an error message."""
    key = shown(rows.keys[row])
    value = shown(rows.values[row])
    return f"the record with key {key}, value {value} and timestamp {rows.timestamps[row]}"


def shown(value: object) -> str:
    """Return the `repr` of a value, in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


MANY_ROWS = 4_096

_ADD_ORIGIN = "{add_origin}({current}.origin())\n"
_NOTE_TOPIC = "{topics}[{topic}] = None\n"

_NOTE_REACHED = "if timestamp != {current}.reached: {reached}[len({keys})] = {current}.reached\n"
_ADD_RANK = "{add_rank}({current}.rank)\n"

_APPEND = """\
if {current}.headers: {headers}[len({keys})] = {current}.origin()
{add_key}(key); {add_value}(value); {add_timestamp}(timestamp)"""


class TopicBuffer:
    """The records of one topic in order: in parts, one for each run of records of the same sink."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[SinkRows] = []

    def of(self, sink: SinkNode) -> SinkRows:
        """Return the part to which a sink appends."""
        if not self.parts or self.parts[-1].sink is not sink:
            self.parts.append(SinkRows(sink))
        return self.parts[-1]


class OutputBuffers:
    """The output buffers of one task.

    Parameters
    ----------
    sinks : collection of SinkNode
        All sinks of the task.
    current : CurrentRecord
        The current record, from which each row gets its headers.
    failures : Failures
        Handles rows that cannot be written; its dead letters are sent with the other rows.
    collector : Collector
        Takes the encoded rows.
    topic_names : mapping of str to str
        Real names of topics whose name in the topology differs: internal topics.
    in_order : bool
        True if topics are sent in the order of their first rows; else in any order.
    """

    def __init__(
        self,
        sinks: Collection[SinkNode],
        current: CurrentRecord,
        failures: Failures,
        collector: Collector,
        topic_names: Mapping[str, str],
        *,
        in_order: bool = False,
    ) -> None:
        self._in_order = in_order
        self._written_topics = dict[str, None]()
        self._current = current
        self._failures = failures
        self._has_handler = failures.guards_production
        self._collector = collector
        self._topic_names = topic_names
        self._topics: dict[str, TopicBuffer] = {}
        fixed = [sink.topic for sink in sinks if isinstance(sink.topic, str)]
        dynamic = len(fixed) < len(sinks)
        self._exclusive = {topic for topic in fixed if fixed.count(topic) == 1 and not dynamic}
        self._written_times = WrittenTimes()
        self.follows_time = dynamic or any(self.merges(topic) for topic in fixed)

    def merges(self, topic: str) -> bool:
        """Return whether rows of a topic, by its name in the topology, need their stream times."""
        return self._collector.merges(self._topic_names.get(topic, topic))

    def has_ranks(self, topic: str) -> bool:
        """Return whether rows of a topic, by its name in the topology, carry ranks."""
        return self._collector.has_ranks(self._topic_names.get(topic, topic))

    def forward_to(self, sink: SinkNode) -> Forward:
        """Return the function that appends records to the topic of a sink."""
        if callable(sink.topic):
            return self._dynamic_sink(sink, sink.topic)
        return self._static_sink(sink, sink.topic, self._topics.setdefault(sink.topic, TopicBuffer()))

    def statement_for(self, sink: SinkNode) -> Statement | None:
        """Return the last statement of a chain, which appends to the topic of a sink.

        None if the buffer must be chosen for each record.
        """
        if not isinstance(sink.topic, str) or sink.topic not in self._exclusive:
            return None
        rows = self._topics.setdefault(sink.topic, TopicBuffer()).of(sink)
        names = {"current": self._current, "headers": rows.headers, "keys": rows.keys}
        columns = {"key": rows.keys, "value": rows.values, "timestamp": rows.timestamps}
        names |= {f"add_{name}": column.append for name, column in columns.items()}
        text = _APPEND
        if self._has_handler:
            text = _ADD_ORIGIN + text
            names = {**names, "add_origin": rows.origins.append}
        if self._in_order:
            text = _NOTE_TOPIC + text
            names = {**names, "topics": self._written_topics, "topic": sink.topic}
        if self.merges(sink.topic):
            text = _NOTE_REACHED + text
            names = {**names, "reached": rows.reached}
        if self.has_ranks(sink.topic):
            text = _ADD_RANK + text
            names = {**names, "add_rank": rows.ranks.append}
        return Statement(text, names)

    def send_if_many(self) -> None:
        """Send if at least `MANY_ROWS` are buffered."""
        if sum([len(rows.keys) for buffer in self._topics.values() for rows in buffer.parts]) >= MANY_ROWS:
            self.send()

    def send(self) -> None:
        """Encode the buffered rows and hand them to the collector, topic by topic."""
        for topic in (*self._written_topics, *self._topics):
            self.drain(topic)
        self._written_topics.clear()
        self._failures.send_letters()

    def end_flush(self) -> None:
        """Send the rows of a flush, after which a commit follows."""
        self.send()
        self._written_times.restart()

    def drain(self, topic: str) -> None:
        """Encode and send the rows of one topic, by its name in the topology, before later rows."""
        buffer = self._topics[topic]
        for rows in buffer.parts:
            if rows.keys:
                self._send_rows(self._topic_names.get(topic, topic), rows)
        if topic not in self._exclusive:
            buffer.parts.clear()

    def send_columns(
        self, topic: str, columns: EncodedRows, task_times: Integers | None, ranks: Integers | None
    ) -> None:
        """Send rows that are encoded already, after the buffered rows of the topic.

        `task_times` are the stream times of the task at each row, for topics that merge, and `ranks` their ranks.
        """
        if not len(columns.keys):
            return
        self.drain(topic)
        name = self._topic_names.get(topic, topic)
        if task_times is not None:
            row_ranks = ranks if self._collector.has_ranks(name) else None
            order = self._written_times.of_columns(name, task_times, row_ranks)
            columns = columns._replace(stream_times=order.times, ranks=order.ranks)
        self._send(name, columns)

    def _send(self, topic: str, rows: EncodedRows, chosen: Partitions | None = None) -> None:
        send_partitioned(self._collector, topic, rows, self._current.partition, chosen)

    def _send_rows(self, topic: str, rows: SinkRows) -> None:
        accepted = self._accepted_columns(topic, rows)
        if rows.keys:
            partitions = self._partitions(topic, rows)  # may copy rows
            columns = accepted if rows.sink.partitioner is None else encoded(rows, topic)
            if self._collector.merges(topic):
                ranks = rows.ranks if self._collector.has_ranks(topic) else None
                order = self._written_times.of_rows(topic, columns.timestamps, rows.reached, ranks)
                columns = columns._replace(stream_times=order.times, ranks=order.ranks)
            self._send(topic, columns, partitions)
        rows.clear()

    def _accepted_columns(self, topic: str, rows: SinkRows) -> EncodedRows:
        """Encode rows, without those that do not encode or that the topic refuses."""
        try:
            columns = encoded(rows, topic)
        except RegistryError:
            raise
        except Exception:
            self._leave_out_unwritable(topic, rows)
            columns = encoded(rows, topic)
        return encoded(rows, topic) if self._leave_out_refused(topic, rows, columns) else columns

    def _leave_out_unwritable(self, topic: str, rows: SinkRows) -> None:
        """Let the handler decide about each row that does not encode or that no topic can hold; it may drop the row."""
        sides: tuple[Side, Side] = ("value", "key")
        failures = self._failures
        failed = dict[int, Callable[[ErrorHandlerContext, ProducerRecord], None]]()
        for side in sides:
            for row, error in unencodable(rows, topic, side):
                failed[row] = partial(failures.serialization, error=error, origin=side)
        for row, cause in unwritable(rows):
            failed.setdefault(row, partial(failures.refused, error=LogError(f"{described(rows, row)} {cause}")))
        for row in sorted(failed):
            record = ProducerRecord(topic, *rows.record(row))
            failed[row](self._current.error_context_of(rows.origin(row), rows.sink.name, record.timestamp), record)
        if failed:
            rows.keep([row for row in range(len(rows.keys)) if row not in failed])

    def _leave_out_refused(self, topic: str, rows: SinkRows, columns: EncodedRows) -> bool:
        """Let the handler decide about each row that the topic refuses; return whether rows were dropped."""
        refused = self._collector.refused(topic, columns)
        for row, error in refused.items():
            key = columns.keys[row].as_py()
            value = columns.values[row].as_py()
            record = ProducerRecord(topic, key, value, *rows.record(row)[2:])
            origin = self._current.error_context_of(rows.origin(row), rows.sink.name, record.timestamp)
            self._failures.refused(origin, record, error)
        if refused:
            rows.keep([row for row in range(len(rows.keys)) if row not in refused])
        return bool(refused)

    def accepts_columns(self, topic: str, columns: EncodedRows) -> bool:
        """Return whether `send_columns` takes these rows; the record path handles rows that a topic refuses."""
        return not (self._has_handler and self._collector.refused(self._topic_names.get(topic, topic), columns))

    def _partitions(self, topic: str, rows: SinkRows) -> Partitions | None:
        if rows.sink.partitioner is not None:
            return chosen_partitions(rows.sink.partitioner, topic, self._collector.partitions(topic), rows)
        if isinstance(rows.sink.key, TimeWindowedSerde | SessionWindowedSerde):
            # All windows of a key go to the same partition, that of the inner key.
            inner = rows.sink.key.inner.encode_rows([None if key is None else key.key for key in rows.keys])
            return partitions_of(inner, self._collector.partitions(topic))
        return None

    def _static_sink(self, sink: SinkNode, topic: str, rows_of_topic: TopicBuffer) -> Forward:
        current = self._current
        has_handler = self._has_handler
        written_topics = self._written_topics
        merges = self.merges(topic)
        has_ranks = self.has_ranks(topic)

        def shared_sink(key: object, value: object, timestamp: int) -> None:
            written_topics[topic] = None
            rows = rows_of_topic.of(sink)
            if current.headers:
                rows.headers[len(rows.keys)] = current.origin()
            if merges and timestamp != current.reached:
                rows.reached[len(rows.keys)] = current.reached
            if has_ranks:
                rows.ranks.append(current.rank)
            rows.keys.append(key)
            rows.values.append(value)
            rows.timestamps.append(timestamp)
            if has_handler:
                rows.origins.append(current.origin())

        return shared_sink

    def _dynamic_sink(self, sink: SinkNode, choose: Callable[..., str]) -> Forward:
        current = self._current
        topics = self._topics
        sinks = dict[str, SinkNode]()

        def dynamic_sink(key: object, value: object, timestamp: int) -> None:
            topic = choose(key, value, current.context(timestamp))
            if topic not in topics and not isinstance(topic, str):
                raise TypeError(f"it must choose the name of a topic, not {topic!r}")
            of_topic = sinks.get(topic) or sinks.setdefault(topic, sink.of_topic(topic))
            self._static_sink(of_topic, topic, topics.setdefault(topic, TopicBuffer()))(key, value, timestamp)

        return dynamic_sink


def chosen_partitions(partitioner: Callable[..., object], topic: str, count: int, rows: SinkRows) -> Partitions:
    """Call a partitioner for every row.

    It returns a partition, None for the default partitioner, or several partitions: the row is copied to each.
    """
    choices = []
    for key, value in zip(rows.keys, rows.values, strict=True):
        try:
            choices.append(_checked_choice(partitioner(topic, key, value, count), count))
        except Exception as error:
            place = f"with key {shown(key)} and value {shown(value)} for topic {topic}"
            raise ProcessingError(rows.sink.name, rows.sink.declared_at, place, error) from error
    if any(len(partitions) != 1 for partitions in choices):
        rows.keep([row for row, partitions in enumerate(choices) for _ in partitions])
    return np.array(list(chain.from_iterable(choices)), dtype=np.int64)


def _checked_choice(choice: Any, count: int) -> list[int]:
    if choice is None:
        return [BY_KEY]
    partitions = sorted(map(index, choice)) if isinstance(choice, Iterable) else [index(choice)]
    if partitions and not 0 <= partitions[0] <= partitions[-1] < count:
        raise ValueError(f"the partitioner chose {choice}, but there are partitions 0 to {count - 1}")
    return partitions
