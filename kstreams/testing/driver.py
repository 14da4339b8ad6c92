"""`TopologyTestDriver`: runs a topology in the test's own thread, record by record; the test moves its clock."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kstreams.config import Config
from kstreams.errors import StateError, UnknownTopicError
from kstreams.kernel.advice import AdvisedCalls, Advising
from kstreams.kernel.batch import Batch, Row
from kstreams.kernel.clock import ManualClock, SystemClock
from kstreams.kernel.durations import Duration, Time, to_ms
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.os.forks import finalized_here, of_one_process
from kstreams.processor.api.error_handlers import writes_any_topic
from kstreams.processor.api.metrics import Measured, merged
from kstreams.processor.context.application import Application
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.task.task import Task, TaskResources
from kstreams.processor.topology.nodes import ProcessorNode, SubTopology, matches
from kstreams.processor.topology.topology import Topology, built
from kstreams.record import Record
from kstreams.serdes import Serde, serde_of
from kstreams.serdes.base import SerdeUse
from kstreams.state import open_task_state, store_kinds
from kstreams.state.api import TaskState
from kstreams.testing.topics import TestInputTopic, TestOutputTopic, exact_time_ms

if TYPE_CHECKING:
    from kstreams.dsl.builder import StreamsBuilder
from collections import defaultdict, deque
from collections.abc import Iterator

from kstreams.errors import LogError
from kstreams.kernel import java_priority_queue
from kstreams.kernel.batch import TopicPartition
from kstreams.processor.task.partition_group import PartitionGroup, Queue
from kstreams.processor.topology.nodes import processor_nodes
from kstreams.record import ValueAndTimestamp
from kstreams.state.api import StoreBuilder, StoreKind
from kstreams.state.values_with_headers import without_headers


class StoreViews:
    """The stores of a driver by name.

    Parameters
    ----------
    builders : mapping of str to StoreBuilder
        The builders of the stores, with their kinds.
    stores : mapping of str to StateStore
        The open stores.
    """

    def __init__(self, builders: Mapping[str, StoreBuilder], stores: Mapping[str, Any]) -> None:
        self._builders = builders
        self._stores = stores

    def get(self, name: str, expected: StoreKind, *other_kinds: StoreKind) -> Any:
        """Return the store of this name, if its kind is `expected` or one of the other kinds."""
        store = self.any(name)
        kind = self._builders[name].kind
        if kind not in (expected, *other_kinds):
            raise StateError(f"The state store {name!r} is a {kind.name} store, not a {expected.name} store.")
        return store

    def seen_as(self, name: str, kind: StoreKind, *other_kinds: StoreKind) -> Any:
        """Return a store as one of a kind; timestamps and headers that the kind does not have are hidden."""
        store = self.get(name, kind, *other_kinds)
        builder = self._builders[name]
        if builder.kind is kind:
            return store if builder.result is None else ResultsOnly(store)
        return WithoutHeaders(store) if kind.timestamped else ValuesOnly(store)

    def any(self, name: str) -> Any:
        """Return the store of this name, of any kind."""
        if name not in self._stores:
            names = ", ".join(sorted(self._stores)) or "none"
            raise StateError(f"The topology has no state store {name!r}; it has: {names}.")
        return self._stores[name]


class ResultsOnly:
    """A view of a store with the results of its aggregation, as queries give them, and the read methods of its kind."""

    _hidden_part = "states"

    def __init__(self, store: Any) -> None:
        self._store = store
        self._view = store.builder.kind.view

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if not hasattr(self._view, method):
            name = self._store.name
            raise AttributeError(
                f"the view of the store {name} without {self._hidden_part} has no method {method!r}: "
                "get_state_store() returns the store itself"
            )
        read = getattr(self._store, method)
        return read if method == "approximate_num_entries" else lambda *arguments: self._rows(read(*arguments))

    def _rows(self, value: object) -> object:
        """Return what a read gives, a row or an iterator of entries, in the form of the view."""
        if isinstance(value, Iterator):
            return ((key, self._row_view(self._store.builder.query_value(row))) for key, row in value)
        return self._row_view(self._store.builder.query_value(value))

    def _row_view(self, row: object) -> object:
        return row


class ValuesOnly(ResultsOnly):
    """A view of a store without timestamps and headers."""

    _hidden_part = "timestamps"

    def _row_view(self, row: object) -> object:
        bare = without_headers(row)
        return bare.value if isinstance(bare, ValueAndTimestamp) else bare


class WithoutHeaders(ResultsOnly):
    """A view of a store without headers."""

    _hidden_part = "headers"

    def _row_view(self, row: object) -> object:
        return without_headers(row)


class JavaPartitionGroup(PartitionGroup):
    """The partitions of a test driver, in a binary heap that moves them as Java does."""

    def _offer(self, queue: Queue) -> None:
        java_priority_queue.push(self._heads, (queue.head(), queue.rank, queue))

    def _next_queue(self) -> Queue:
        return java_priority_queue.pop(self._heads)[2]


class DriverTopics:
    """The `Collector` of a test driver; each topic has one partition.

    Parameters
    ----------
    is_input : callable
        Returns True if the topology reads a topic.
    enqueue : callable
        Takes the batches of topics that the topology reads.
    """

    def __init__(self, is_input: Callable[[str], bool], enqueue: Callable[[Batch], None]) -> None:
        self._is_input = is_input
        self._enqueue = enqueue
        self._offsets: Counter[str] = Counter()
        self.queues: dict[str, deque[Row]] = defaultdict(deque)
        self.written: set[str] = set()

    def send(self, topic: str, rows: EncodedRows, partitions: object = None) -> None:
        """Append rows to a topic, which has one partition."""
        self.written.add(topic)
        batch = rows.as_batch(topic, self._offsets[topic])
        self._offsets[topic] += len(batch)
        self.queues[topic].extend(batch.rows())
        if self._is_input(topic):
            self._enqueue(batch)

    def partitions(self, topic: str) -> int:
        """Return 1."""
        return 1

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
        """Return nothing: these topics take every record."""
        return {}

    def merges(self, topic: str) -> bool:
        """Return False: only one task writes."""
        return False

    def has_ranks(self, topic: str) -> bool:
        """Return False: only one task writes."""
        return False

    def batch_of(self, topic: str, rows: list[Row]) -> Batch:
        """Return rows that a test writes to a topic as a batch, at the next offsets."""
        batch = Batch.of_rows(TopicPartition(topic, 0), rows, self._offsets[topic])
        self._offsets[topic] += len(rows)
        return batch


def batches_keep_order(sub_topologies: Sequence[SubTopology]) -> bool:
    """Return whether every output topic gets the same rows in the same order, for any batches of the input.

    Within one sub-topology the order is always the same. If a sub-topology reads a topic that another one writes, the
    writer processes a whole batch before the reader begins. This changes the output only if branches meet again, or if
    a processor reads the stream time, which all sub-topologies of a test driver share.
    """
    if not _fed_back(sub_topologies):
        return True
    return not any([_meets(sub_topologies), _chooses_topics(sub_topologies), _has_processors(sub_topologies)])


def _written(sub_topology: SubTopology) -> set[str]:
    return {sink.topic for sink in sub_topology.sinks if isinstance(sink.topic, str)}


def _read(sub_topology: SubTopology) -> set[str]:
    return {topic for source in sub_topology.sources for topic in source.topics}


def _fed_back(sub_topologies: Sequence[SubTopology]) -> set[str]:
    """Return the topics that the topology both writes and reads."""
    return set().union(*map(_written, sub_topologies)) & set().union(*map(_read, sub_topologies))


def _meets(sub_topologies: Sequence[SubTopology]) -> bool:
    """Return whether a fed-back topic is read beside another one, or two sub-topologies write the same topic."""
    fed_back = _fed_back(sub_topologies)
    reads_another = any(_read(part) & fed_back and len(_read(part)) > 1 for part in sub_topologies)
    writers = Counter(topic for part in sub_topologies for topic in _written(part))
    return reads_another or any(count > 1 for count in writers.values())


def _chooses_topics(sub_topologies: Sequence[SubTopology]) -> bool:
    return any(callable(sink.topic) for part in sub_topologies for sink in part.sinks)


def _has_processors(sub_topologies: Sequence[SubTopology]) -> bool:
    return any(True for part in sub_topologies for _ in processor_nodes(part))


def _with_application_id(config: object) -> Any:
    """Return the settings with the default application id "test"; other types are returned for others to refuse."""
    return {"application.id": "test", **(config or {})} if isinstance(config, Mapping | None) else config


class TopologyTestDriver(AdvisedCalls, metaclass=Advising):
    """A test runner of a topology, without topics, threads or waiting.

    Kafka Streams: `TopologyTestDriver`. All sub-topologies run as one task, and every topic has one partition. Each
    record is followed by a commit, so that the record cache holds nothing back. Records that the topology writes to a
    topic that it reads are processed too.

    Parameters
    ----------
    topology : Topology, StreamsBuilder or callable
        The topology as in an application file; a builder is built with `config`.
    config : mapping, optional
        Settings by Kafka Streams' keys; `application.id` is "test" unless given.
    start_ms : int (ms) or datetime, optional
        Wall-clock time at the start; the time of the machine by default. It moves only by `advance_wall_clock_time`.

    Examples
    --------
    >>> import kstreams as ks
    >>> builder = ks.StreamsBuilder()
    >>> builder.stream("in", key=str, value=str).map_values(str.upper).to("out", key=str, value=str)
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in", key=str, value=str).pipe_input("k", "hello", timestamp=5)
    ...     driver.create_output_topic("out", key=str, value=str).read_key_value()
    ('k', 'HELLO')
    """

    _spellings: ClassVar[Mapping[str, str]] = {
        "pipe_input": "driver.create_input_topic(name, key=..., value=...).pipe_input(key, value)",
        "read_output": "driver.create_output_topic(name, key=..., value=...).read_record()",
        "process": "driver.create_input_topic(name, key=..., value=...).pipe_input(key, value)",
    }

    def __init__(
        self,
        topology: Topology | StreamsBuilder | Callable[[], Any],
        config: Mapping[str, Any] | None = None,
        *,
        start_ms: Time | None = None,
    ) -> None:
        self._config = config if isinstance(config, Config) else Config.of(_with_application_id(config))
        self._closing = ExitStack()
        # A test does not wait for a server.
        self._registry = ApplicationRegistry(self._config.replace({"task.timeout.ms": 0}))
        self._closing.callback(self._registry.close)
        topology = built(topology, self._config, "TopologyTestDriver").bound(self._config, self._registry)
        self._is_closed = False
        self._clock = ManualClock(SystemClock().wall_ms() if start_ms is None else exact_time_ms(start_ms))
        self._names = {topic.name: f"{self._config.application_id}-{topic.name}" for topic in topology.internal_topics}
        parts = topology.sub_topologies
        self._own = [part for part in parts if not part.is_global]
        self._whole_batches = not self._config.caches and batches_keep_order(self._own)
        self._driver_topics = DriverTopics(self._is_read, self._enqueue)
        global_stores: dict[str, Any] = {}
        self._global_tasks = [self._start(part, global_stores) for part in parts if part.is_global]
        self._task = self._start(_merged(self._own), global_stores)
        self._group = JavaPartitionGroup()
        self._views = StoreViews(topology.stores, {**global_stores, **self._task.state.stores})
        self._topology = topology
        of_one_process(self, "This TopologyTestDriver", StateError)

    # ---- topics

    def create_input_topic(
        self, name: str, *, key: object, value: object, start_ms: Time | None = None, auto_advance: Duration = 0
    ) -> TestInputTopic:
        """Return a topic to write to, which the topology reads.

        Parameters
        ----------
        name : str
        key, value : type or Serde
        start_ms : int (ms) or datetime, optional
            Timestamp of the first record without one; by default the driver's wall-clock time.
        auto_advance : timedelta or int (ms)
            The time between two records without a timestamp.

        Raises
        ------
        UnknownTopicError
            If no source reads the topic. The error lists the topics that are read.
        """
        if not self._is_read(name) and self._global_task(name) is None:
            topics = ", ".join(sorted(self._input_names())) or "none"
            raise UnknownTopicError(f"The topology does not read topic {name!r}; it reads: {topics}.")
        start_ms = self._clock.wall_ms() if start_ms is None else exact_time_ms(start_ms)
        key_serde = self._serde(key, name, is_key=True)
        value_serde = self._serde(value, name, is_key=False)
        return TestInputTopic(name, key_serde, value_serde, self._pipe, start_ms, to_ms(auto_advance))

    def create_output_topic(self, name: str, *, key: object, value: object) -> TestOutputTopic:
        """Return a topic to read from, which the topology writes; internal topics have their full names.

        Raises
        ------
        UnknownTopicError
            If no sink writes the topic. The error lists the topics that are written.
        """
        topics = self._output_names()
        if topics is not None and name not in topics:
            raise UnknownTopicError(
                f"The topology does not write topic {name!r}; it writes: {', '.join(sorted(topics)) or 'none'}."
            )
        key_serde = self._serde(key, name, is_key=True)
        value_serde = self._serde(value, name, is_key=False)
        return TestOutputTopic(name, key_serde, value_serde, self._driver_topics.queues[name])

    def produced_topic_names(self) -> set[str]:
        """Return the topics that were written so far."""
        return set(self._driver_topics.written)

    def pipe_batch(self, records: Iterable[tuple[TestInputTopic, Record[object, object]]]) -> None:
        """Process records of any topics in the given order, in batches as large as the order allows.

        Every topic gets the same output as if the records were piped one by one.
        """
        for name, rows in groupby(
            ((topic.name, topic.row_of(record)) for topic, record in records), lambda row: row[0]
        ):
            self._pipe(name, [row for _, row in rows])

    # ---- time and end of input

    def advance_wall_clock_time(self, duration: Duration) -> None:
        """Advance the wall clock: call each punctuator that is due once, and advance the time of idle sources."""
        self._check_open("advance_wall_clock_time()")
        self._clock.advance(to_ms(duration))
        self._task.punctuate()
        self._task.pass_time()
        self._commit(self._task)
        self._run()

    def end_of_input(self) -> None:
        """End all input: windows close, and suppressed updates and unmatched outer-join rows are emitted."""
        self._check_open("end_of_input()")
        self._task.end_of_input()
        self._commit(self._task)
        self._run()

    # ---- state

    def get_state_store(self, name: str) -> Any:
        """Return the open store of this name, of any kind."""
        return self._stores.any(name)

    def get_all_state_stores(self) -> dict[str, object]:
        """Return all open stores by name."""
        return {name: self._stores.any(name) for name in self._topology.stores}

    def get_key_value_store(self, name: str) -> Any:
        """Return a key-value store; timestamps and headers in it are hidden."""
        with_headers = store_kinds.TIMESTAMPED_KEY_VALUE_WITH_HEADERS
        return self._stores.seen_as(name, store_kinds.KEY_VALUE, store_kinds.TIMESTAMPED_KEY_VALUE, with_headers)

    def get_timestamped_key_value_store(self, name: str) -> Any:
        """Return a key-value store of ValueAndTimestamp, as tables have; headers in it are hidden."""
        with_headers = store_kinds.TIMESTAMPED_KEY_VALUE_WITH_HEADERS
        return self._stores.seen_as(name, store_kinds.TIMESTAMPED_KEY_VALUE, with_headers)

    def get_timestamped_key_value_store_with_headers(self, name: str) -> Any:
        """Return a key-value store of ValueTimestampHeaders."""
        return self._stores.get(name, store_kinds.TIMESTAMPED_KEY_VALUE_WITH_HEADERS)

    def get_window_store(self, name: str) -> Any:
        """Return a window store; timestamps and headers in it are hidden."""
        with_headers = store_kinds.TIMESTAMPED_WINDOW_WITH_HEADERS
        return self._stores.seen_as(name, store_kinds.WINDOW, store_kinds.TIMESTAMPED_WINDOW, with_headers)

    def get_timestamped_window_store(self, name: str) -> Any:
        """Return a window store of ValueAndTimestamp, as windowed tables have; headers in it are hidden."""
        with_headers = store_kinds.TIMESTAMPED_WINDOW_WITH_HEADERS
        return self._stores.seen_as(name, store_kinds.TIMESTAMPED_WINDOW, with_headers)

    def get_timestamped_window_store_with_headers(self, name: str) -> Any:
        """Return a window store of ValueTimestampHeaders."""
        return self._stores.get(name, store_kinds.TIMESTAMPED_WINDOW_WITH_HEADERS)

    def get_session_store(self, name: str) -> Any:
        """Return a session store; headers in it are hidden."""
        return self._stores.seen_as(name, store_kinds.SESSION, store_kinds.SESSION_WITH_HEADERS)

    def get_session_store_with_headers(self, name: str) -> Any:
        """Return a session store of AggregationWithHeaders."""
        return self._stores.get(name, store_kinds.SESSION_WITH_HEADERS)

    def get_versioned_store(self, name: str) -> Any:
        """Return a versioned key-value store."""
        return self._stores.get(name, store_kinds.VERSIONED)

    @property
    def dropped(self) -> Counter[tuple[str, str]]:
        """The number of dropped records by (operator, reason)."""
        return sum((task.dropped for task in self._global_tasks), Counter(self._task.dropped))

    def sensors(self) -> dict[tuple[str, str], Measured]:
        """Return the measurements of the processors' sensors, by (operator, sensor)."""
        return merged(task.sensors for task in (*self._global_tasks, self._task))

    def close(self) -> None:
        """Close processors and stores, and remove their files."""
        self._is_closed = True
        self._closing.close()

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- tasks

    def _start(self, part: SubTopology, global_stores: dict[str, Any]) -> Task:
        state = self._open(part)
        if part.is_global:
            global_stores.update(state.stores)
        application = Application.of(self._config, self._clock, self._names)
        resources = TaskResources(state, self._driver_topics, global_stores, sends_in_order=not self._whole_batches)
        task = Task(part, 0, application, resources)
        self._closing.callback(task.close)
        return task

    def _open(self, part: SubTopology) -> TaskState:
        directory = tempfile.mkdtemp(prefix="kstreams-")
        state = open_task_state(part.stores, Path(directory), caching=self._config.caches)
        finalizer = finalized_here(self, _release, state.close_files, directory)
        self._closing.callback(shutil.rmtree, directory)
        self._closing.callback(state.close)
        self._closing.callback(finalizer.detach)
        return state

    def _serde(self, kind: object, topic: str, *, is_key: bool) -> Serde[object]:
        return serde_of(kind).of_topic(SerdeUse(topic, is_key, self._config, self._registry))

    @property
    def _stores(self) -> StoreViews:
        self._check_open("a read of a store")
        return self._views

    def _check_open(self, call: str) -> None:
        if self._is_closed:
            raise StateError(f"{call} comes after the driver's close(): call it before, or within the with block")

    def _pipe(self, topic: str, rows: Sequence[Row]) -> None:
        self._check_open(f"input for topic {topic!r}")
        for rows_of_batch in [list(rows)] if self._whole_batches else [[row] for row in rows]:
            batch = self._driver_topics.batch_of(topic, rows_of_batch)
            task = self._global_task(topic)
            if task is None or self._is_read(topic):
                self._enqueue(batch)
                self._run()
            if task is not None:
                task.process(task.stamp(batch))
                task.report_skipped()
                self._commit(task)

    def _enqueue(self, batch: Batch) -> None:
        self._group.add(self._task.stamp(batch))

    def _run(self) -> None:
        max_records = 10_000 if self._whole_batches else 1
        while (run := self._group.next_run(max_records)) is not None:
            self._task.process(run)
            self._commit(self._task)
        if self._task.report_skipped():
            self._commit(self._task)

    def _commit(self, task: Task) -> None:
        task.flush()
        changes = task.state.changes()
        for store, rows in changes.items():
            topic = f"{store}-changelog"
            if topic in self._names:
                self._driver_topics.send(self._names[topic], EncodedRows(*rows))
        task.state.persist(changes, {})

    def _is_read(self, topic: str) -> bool:
        return any(
            topic in (self._names.get(name, name) for name in source.topics) or matches(source, topic)
            for part in self._own
            for source in part.sources
        )

    def _global_task(self, topic: str) -> Task | None:
        return next((task for task in self._global_tasks if topic in _topics(task.sub_topology)), None)

    def _input_names(self) -> set[str]:
        own = {self._names.get(topic, topic) for part in self._own for topic in _topics(part)}
        return own.union(*(_topics(task.sub_topology) for task in self._global_tasks))

    def _output_names(self) -> set[str] | None:
        """Return the topics that can be written; None if a sink or an exception handler chooses a topic."""
        sinks = [sink for part in self._own for sink in part.sinks]
        if any(callable(sink.topic) for sink in sinks) or writes_any_topic(self._config):
            return None
        sink_topics = {self._names.get(sink.topic, sink.topic) for sink in sinks if isinstance(sink.topic, str)}
        dead_letters = {self._config["errors.dead.letter.queue.topic.name"]} - {None}
        operators = (node.operator for part in self._own for node in part.nodes if isinstance(node, ProcessorNode))
        parked = {operator.parking_topic for operator in operators if operator.parking_topic is not None}
        return sink_topics | dead_letters | parked | set(self._names.values())


def _merged(parts: Sequence[SubTopology]) -> SubTopology:
    """Return all sub-topologies as one: the driver runs a single task, as Kafka Streams' driver does."""
    nodes = tuple(node for part in parts for node in part.nodes)
    stores = {store.name: store for part in parts for store in part.stores}
    return SubTopology(0, nodes, tuple(stores.values()))


def _release(close_files: Callable[[], None], directory: str) -> None:
    """Release a driver that was not closed. RocksDB waits a second if its folder is removed before its files close."""
    try:
        close_files()
    finally:
        shutil.rmtree(directory)


def _topics(part: SubTopology) -> set[str]:
    return {topic for source in part.sources for topic in source.topics}
