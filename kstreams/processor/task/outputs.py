"""`OutputBuffers`: the output of a task, buffered by topic, encoded in bulk and handed to a `Collector`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from kstreams.errors import LogError, RegistryError
from kstreams.log.partitioning import partitions_of
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.context.chain import Statement
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.encoded_rows import EncodedRows, Partitions
from kstreams.processor.context.errors.failures import Failures
from kstreams.processor.task.collector import Collector, chosen_partitions, send_partitioned
from kstreams.processor.task.sink_rows import Side, SinkRows, described, encoded, unencodable, unwritable
from kstreams.processor.task.written_times import Longs, WrittenTimes
from kstreams.processor.topology.nodes import SinkNode
from kstreams.processor.topology.operator import Forward
from kstreams.record import ProducerRecord
from kstreams.serdes import SessionWindowedSerde, TimeWindowedSerde

MANY_ROWS = 4_096

_ADD_ORIGIN = "{add_origin}({current}.origin())\n"
_NOTE_TOPIC = "{topics}[{topic}] = None\n"

_NOTE_REACHED = "if timestamp != {current}.reached: {reached}[len({keys})] = {current}.reached\n"

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

    def send_columns(self, topic: str, columns: EncodedRows, task_times: Longs | None) -> None:
        """Send rows that are encoded already, after the buffered rows of the topic.

        `task_times` are the stream times of the task at each row, for topics that merge.
        """
        if not len(columns.keys):
            return
        self.drain(topic)
        name = self._topic_names.get(topic, topic)
        stream_times = None if task_times is None else self._written_times.of_columns(name, task_times)
        self._send(name, columns._replace(stream_times=stream_times))

    def _send(self, topic: str, rows: EncodedRows, chosen: Partitions | None = None) -> None:
        send_partitioned(self._collector, topic, rows, self._current.partition, chosen)

    def _send_rows(self, topic: str, rows: SinkRows) -> None:
        accepted = self._accepted_columns(topic, rows)
        if rows.keys:
            partitions = self._partitions(topic, rows)  # may copy rows
            columns = accepted if rows.sink.partitioner is None else encoded(rows, topic)
            merges = self._collector.merges(topic)
            times = self._written_times.of_rows(topic, columns.timestamps, rows.reached) if merges else None
            self._send(topic, columns._replace(stream_times=times), partitions)
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

        def shared_sink(key: object, value: object, timestamp: int) -> None:
            written_topics[topic] = None
            rows = rows_of_topic.of(sink)
            if current.headers:
                rows.headers[len(rows.keys)] = current.origin()
            if merges and timestamp != current.reached:
                rows.reached[len(rows.keys)] = current.reached
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
