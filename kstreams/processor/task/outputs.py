"""What the sinks of a task write: rows gathered per topic as live objects, encoded in bulk, handed to a `Collector`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from operator import index
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.batch import headers_column
from kstreams.errors import LogError, ProcessingError, SerdeError
from kstreams.log.partitioning import partitions_of
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.api.record_context import RecordContext
from kstreams.processor.context.chain import Statement
from kstreams.processor.context.dead_letters import DeadLetters
from kstreams.processor.context.record_cursor import Origin
from kstreams.processor.context.task_context import TaskContext
from kstreams.processor.topology.nodes import SinkNode
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers, ProducerRecord
from kstreams.serdes import BytesSerde, Serde, WindowedSerde
from kstreams.serdes.failing import failing_rows
from kstreams.source_line import operator_at

MANY_ROWS = 4_096

Side: TypeAlias = Literal["key", "value"]
Columns: TypeAlias = tuple[pa.Array, pa.Array, pa.Array, pa.Array | None]

BY_KEY = -1
"""In `partitions` of `Collector.send`: leave the choice to the key."""


_NOWHERE: Origin = (None, 0, ())

_ORIGIN = "{add_origin}({context}.origin())\n"
_TURN = "{turns}[{topic}] = None\n"

_APPEND = """\
if {context}.headers: {headers}[len({keys})] = {context}.origin()
{add_key}(key); {add_value}(value); {add_timestamp}(timestamp)"""


class Collector(Protocol):
    """Where a task's output goes: a producer, the test driver, or Spark."""

    def send(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None,
        partitions: np.ndarray[Any, Any] | None,
    ) -> None:
        """Take encoded rows of one topic, in order.

        Parameters
        ----------
        topic : str
            The real name, with the application's id where the topic is internal.
        keys, values : pyarrow binary array, length n
        timestamps : pyarrow int64 array, length n
            Milliseconds since the epoch.
        headers : pyarrow list<struct<name, value>> array, length n, or None
        partitions : numpy int64 array, shape (n,), or None
            None: all by murmur2 of the key; in an array, `BY_KEY` (-1) says so for one row.
        """
        ...

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; asked only when the task itself must choose one."""
        ...

    def refused(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> Mapping[int, LogError]:
        """The rows that the topic would never take, and why; asked only where a handler decides about them."""
        ...


class SinkRows:
    """Records of one sink, as columns of live objects: plain lists, which cost no garbage collection."""

    __slots__ = ("headers", "keys", "origins", "sink", "timestamps", "values")

    def __init__(self, sink: SinkNode) -> None:
        self.sink = sink
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Origin] = {}  # of the rows that have some, with the input record of each
        self.origins: list[Origin] = []  # the input record of every row, where somebody may ask for it

    def headers_of_rows(self) -> list[Headers]:
        """The headers of every row; empty when none has any."""
        return [self.headers.get(row, _NOWHERE)[2] for row in range(len(self.keys))] if self.headers else []

    def origin(self, row: int) -> Origin:
        """The input record of a row, where it is known."""
        return self.origins[row] if self.origins else self.headers.get(row, _NOWHERE)

    def record(self, row: int) -> tuple[Any, Any, int, Headers]:
        """Key, value, timestamp and headers of one row."""
        return self.keys[row], self.values[row], self.timestamps[row], self.headers.get(row, _NOWHERE)[2]

    def clear(self) -> None:
        self.keys.clear()
        self.values.clear()
        self.timestamps.clear()
        self.headers.clear()
        self.origins.clear()


class TopicBuffer:
    """The records of one topic in order: a new run wherever another sink goes on."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[SinkRows] = []

    def of(self, sink: SinkNode) -> SinkRows:
        """The run to which this sink appends."""
        if not self.runs or self.runs[-1].sink is not sink:
            self.runs.append(SinkRows(sink))
        return self.runs[-1]


class OutputBuffers:
    """The output buffers of one task.

    Parameters
    ----------
    sinks : collection of SinkNode
        All sinks of the task.
    context : TaskContext
        Gives each row its headers.
    collector : Collector
        Takes the encoded rows.
    topic_names : mapping of str to str
        Real names of the topics whose name in the topology differs (internal ones).
    letters : DeadLetters
        What is sent with the rest.
    in_order : bool
        Whether topics are sent in the order in which they got their first rows; otherwise in an order of no meaning.
    """

    def __init__(
        self,
        sinks: Collection[SinkNode],
        context: TaskContext,
        collector: Collector,
        topic_names: Mapping[str, str],
        letters: DeadLetters,
        *,
        in_order: bool = False,
    ) -> None:
        self._in_order, self._turns = in_order, dict[str, None]()
        self._letters, self._guards = letters, context.failures.guards_production
        self._context, self._collector, self._topic_names = context, collector, topic_names
        self._topics: dict[str, TopicBuffer] = {}
        fixed = [sink.topic for sink in sinks if isinstance(sink.topic, str)]
        dynamic = len(fixed) < len(sinks)
        self._exclusive = {topic for topic in fixed if fixed.count(topic) == 1 and not dynamic}

    def forward_to(self, sink: SinkNode) -> Forward:
        """The closure that appends to the topic of a sink."""
        if callable(sink.topic):
            return self._chosen(sink, sink.topic)
        return self._in_turns(sink, sink.topic, self._topics.setdefault(sink.topic, TopicBuffer()))

    def statement_for(self, sink: SinkNode) -> Statement | None:
        """The end of a chain that appends to the topic of a sink; None when it must choose a place per record."""
        if not isinstance(sink.topic, str) or sink.topic not in self._exclusive:
            return None
        rows = self._topics.setdefault(sink.topic, TopicBuffer()).of(sink)
        names = {"context": self._context, "headers": rows.headers, "keys": rows.keys}
        columns = {"key": rows.keys, "value": rows.values, "timestamp": rows.timestamps}
        names |= {f"add_{name}": column.append for name, column in columns.items()}
        text = _APPEND
        if self._guards:
            text, names = _ORIGIN + text, {**names, "add_origin": rows.origins.append}
        if self._in_order:
            text, names = _TURN + text, {**names, "turns": self._turns, "topic": sink.topic}
        return Statement(text, names)

    def send_if_many(self) -> None:
        """Send once enough rows have gathered to be worth a bulk."""
        if sum([len(run.keys) for rows in self._topics.values() for run in rows.runs]) >= MANY_ROWS:
            self.send()

    def send(self) -> None:
        """Encode what was gathered and hand it to the collector, topic by topic."""
        for topic in (*self._turns, *self._topics):
            self.drain(topic)
        self._turns.clear()
        self._letters.send()

    def drain(self, topic: str) -> None:
        """Encode and hand over the rows of one topic (by its name in the topology): what follows comes after them."""
        rows = self._topics[topic]
        for run in rows.runs:
            if run.keys:
                self._send_run(self._topic_names.get(topic, topic), run)
        if topic not in self._exclusive:
            rows.runs.clear()

    def send_columns(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> None:
        """Hand over rows that are encoded already, after those of the topic that wait here."""
        if not len(keys):
            return
        self.drain(topic)
        self._collector.send(self._topic_names.get(topic, topic), keys, values, timestamps, headers, None)

    def _send_run(self, topic: str, run: SinkRows) -> None:
        accepted = self._accepted(topic, run)
        if run.keys:
            partitions = self._partitions(topic, run)  # may copy rows
            columns = accepted if run.sink.partitioner is None else _columns(run, topic)
            self._collector.send(topic, *columns, partitions)
        run.clear()

    def _accepted(self, topic: str, run: SinkRows) -> Columns:
        """What is written of a run, without the rows that cannot be written or that the topic refuses."""
        try:
            columns = _columns(run, topic)
        except Exception:
            self._leave_out_unwritable(topic, run)
            columns = _columns(run, topic)
        return _columns(run, topic) if self._leave_out_refused(topic, run, columns) else columns

    def _leave_out_unwritable(self, topic: str, run: SinkRows) -> None:
        """Ask the handler about each row that does not encode, or that no topic can hold; those it leaves out go."""
        sides: tuple[Side, Side] = ("value", "key")
        failures, failed = self._context.failures, dict[int, Callable[[ErrorHandlerContext, ProducerRecord], None]]()
        for side in sides:
            for row, error in _unencodable(run, topic, side):
                failed[row] = partial(failures.serialization, error=error, origin=side)
        for row, cause in _unwritable(run):
            failed.setdefault(row, partial(failures.refused, error=LogError(f"{_described(run, row)} {cause}")))
        for row in sorted(failed):
            record = ProducerRecord(topic, *run.record(row))
            failed[row](self._context.failure_of(run.origin(row), run.sink.name, record.timestamp), record)
        if failed:
            _keep_rows(run, [row for row in range(len(run.keys)) if row not in failed])

    def _leave_out_refused(self, topic: str, run: SinkRows, columns: Columns) -> bool:
        """Ask the handler about each row that the topic refuses; the rows that it leaves out go. Whether some went."""
        refused = self._collector.refused(topic, *columns)
        for row, error in refused.items():
            key, value = columns[0][row].as_py(), columns[1][row].as_py()
            record = ProducerRecord(topic, key, value, *run.record(row)[2:])
            origin = self._context.failure_of(run.origin(row), run.sink.name, record.timestamp)
            self._context.failures.refused(origin, record, error)
        if refused:
            _keep_rows(run, [row for row in range(len(run.keys)) if row not in refused])
        return bool(refused)

    def takes(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> bool:
        """Whether `send_columns` may be given these rows: a refused one is a matter for the record path."""
        name = self._topic_names.get(topic, topic)
        return not (self._guards and self._collector.refused(name, keys, values, timestamps, headers))

    def _partitions(self, topic: str, run: SinkRows) -> np.ndarray[Any, Any] | None:
        if run.sink.partitioner is not None:
            return _partition_by(run.sink.partitioner, topic, self._collector.partitions(topic), run)
        if isinstance(run.sink.key, WindowedSerde):
            # Windows of one key stay together: only the inner key decides.
            inner = run.sink.key.inner.encode_rows([None if key is None else key.key for key in run.keys])
            return partitions_of(inner, self._collector.partitions(topic))
        return None

    def _in_turns(self, sink: SinkNode, topic: str, rows_of_topic: TopicBuffer) -> Forward:
        context, guards, turns = self._context, self._guards, self._turns

        def shared_sink(key: Any, value: Any, timestamp: int) -> None:
            turns[topic] = None
            rows = rows_of_topic.of(sink)
            if context.headers:
                rows.headers[len(rows.keys)] = context.origin()
            rows.keys.append(key)
            rows.values.append(value)
            rows.timestamps.append(timestamp)
            if guards:
                rows.origins.append(context.origin())

        return shared_sink

    def _chosen(self, sink: SinkNode, choose: Callable[..., str]) -> Forward:
        context, topics = self._context, self._topics

        def dynamic_sink(key: Any, value: Any, timestamp: int) -> None:
            record = RecordContext(context.topic, context.partition, context.offset, timestamp, context.headers)
            topic = choose(key, value, record)
            if topic not in topics and not isinstance(topic, str):
                raise TypeError(f"it must choose the name of a topic, not {topic!r}")
            self._in_turns(sink, topic, topics.setdefault(topic, TopicBuffer()))(key, value, timestamp)

        return dynamic_sink


def _columns(run: SinkRows, topic: str) -> Columns:
    """Keys, values, timestamps and headers as they are written."""
    return (
        _encoded(run, topic, "key", run.sink.key, run.keys),
        _encoded(run, topic, "value", run.sink.value, run.values),
        pa.array(run.timestamps, pa.int64()),
        headers_column(run.headers_of_rows()),
    )


def _encoded(run: SinkRows, topic: str, what: Side, serde: Serde[Any] | None, column: list[Any]) -> pa.Array:
    serde = serde or BytesSerde()
    try:
        return serde.encode_rows(column)
    except Exception as error:
        for _, failure in _unencodable(run, topic, what):
            raise failure from error
        raise SerdeError(f"{run.sink.name} cannot encode the {what}s for topic {topic}: {error}") from error


def _unencodable(run: SinkRows, topic: str, what: Side) -> Iterator[tuple[int, SerdeError]]:
    """The rows whose key or value does not encode, and an error for each."""
    serde, column = (run.sink.key, run.keys) if what == "key" else (run.sink.value, run.values)
    sink = operator_at(run.sink.name, run.sink.declared_at)
    for row, cause in failing_rows((serde or BytesSerde()).encode_rows, column):
        yield (
            row,
            SerdeError(
                f"{sink} cannot write {_described(run, row)} to topic {topic}: "
                f"{serde or BytesSerde()} does not take its {what}, a {type(column[row]).__name__}: {cause}. "
                f"Declare the right type with {what}=."
            ),
        )


def _unwritable(run: SinkRows) -> Iterator[tuple[int, str]]:
    """The rows that no topic can hold, and what is wrong with each."""
    for row, cause in failing_rows(lambda times: pa.array(times, pa.int64()), run.timestamps):
        yield row, f"has a time that does not fit into 64 bits ({cause}): times are milliseconds since 1970."
    for row, cause in failing_rows(headers_column, run.headers_of_rows()):
        yield row, f"has headers that cannot be written ({cause}): a header is a text and bytes or None."


def _described(run: SinkRows, row: int) -> str:
    key, value = _shown(run.keys[row]), _shown(run.values[row])
    return f"the record with key {key}, value {value} and timestamp {run.timestamps[row]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _partition_by(choose: Callable[..., Any], topic: str, count: int, run: SinkRows) -> np.ndarray[Any, Any]:
    """Ask a partitioner for every row: a number, None for the default, or several (the row is copied to each)."""
    chosen = []
    for key, value in zip(run.keys, run.values, strict=True):
        try:
            chosen.append(_choices(choose(topic, key, value, count), count))
        except Exception as error:
            row = f"with key {_shown(key)} and value {_shown(value)} for topic {topic}"
            raise ProcessingError(run.sink.name, run.sink.declared_at, row, error) from error
    if any(len(partitions) != 1 for partitions in chosen):
        _keep_rows(run, [row for row, partitions in enumerate(chosen) for _ in partitions])
    return np.array(list(chain.from_iterable(chosen)), dtype=np.int64)


def _keep_rows(run: SinkRows, rows: list[int]) -> None:
    """Leave of a run these rows, each as often as it is named."""
    run.headers = {new: run.headers[old] for new, old in enumerate(rows) if old in run.headers}
    columns: tuple[list[Any], ...] = (run.keys, run.values, run.timestamps, run.origins)
    for column in filter(None, columns):
        column[:] = [column[row] for row in rows]


def _choices(answer: Any, count: int) -> list[int]:
    if answer is None:
        return [BY_KEY]
    found = sorted(map(index, answer)) if isinstance(answer, Iterable) else [index(answer)]
    if found and not 0 <= found[0] <= found[-1] < count:
        raise ValueError(f"the partitioner chose {answer}, but there are partitions 0 to {count - 1}")
    return found
