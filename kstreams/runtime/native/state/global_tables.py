"""`GlobalTables`: tables of whole topics, loaded before the tasks start, and updated by one thread."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from kstreams.errors import CorruptStateError, LogError, TopologyError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, Consumer
from kstreams.processor.context.application import Application
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.task.task import Task, TaskResources
from kstreams.processor.topology.topology import SubTopology
from kstreams.state import StateLimits, open_task_state
from kstreams.state.api import StateStore, TaskState
from kstreams.state.committed import CommittedViews


class ReadWriteLock:
    """A lock for many readers or one writer. A waiting writer precedes new readers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writer = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock for reading, when no writer has it or waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writer)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock for writing."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writer)
            self._writer = True
            self._changed.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._changed:
                self._writer = False
                self._changed.notify_all()


T = TypeVar("T")

_ROWS = 100_000


class GlobalTables:
    """The global tables of an application.

    Parameters
    ----------
    sub_topologies : sequence of SubTopology
        The sub-topologies that fill global tables.
    folder : Path
        The folder of the stores. It is emptied at every start, because the topics have all rows.
    application : Application
    poll_s : float
        The longest wait of a poll for records.
    limits : StateLimits
        The memory limits of the stores.
    consumer, admin
        The clients that read the topics.
    """

    def __init__(
        self,
        sub_topologies: Sequence[SubTopology],
        folder: Path,
        application: Application,
        *,
        poll_s: float,
        limits: StateLimits,
        consumer: Consumer,
        admin: Admin,
    ) -> None:
        self._consumer = consumer
        self._admin = admin
        self._poll_s = poll_s
        self._folder = folder
        self._closed = threading.Event()
        self._is_damaged = False
        self._lock = ReadWriteLock()
        self._task_of: dict[str, Task] = {}
        self._states: list[TaskState] = []
        self.stores: dict[str, StateStore] = {}
        self.committed: dict[str, CommittedViews] = {}
        """The views of tables as of their last update, by store, for stores with bytes."""
        shutil.rmtree(folder, ignore_errors=True)
        for sub in sub_topologies:
            state = open_task_state(
                sub.stores, folder / str(sub.id), limits=limits, caching=application.settings.caching
            )
            self._states.append(state)
            self.stores |= state.stores
            self.committed |= {store: state.committed for store in state.stores if store in state.committed}
            task = Task(sub, 0, application, TaskResources(state, _NoSinks()))
            self._task_of |= {topic: task for source in sub.sources for topic in source.topics}
        self.reading: Callable[[], AbstractContextManager[None]] = self._lock.shared if self._task_of else nullcontext
        """Returns a context within which the tables do not change, so that tasks may read them."""

    def load(self) -> None:
        """Read the topics up to their present ends."""
        described = {topic: self._admin.describe_topic(topic).partitions for topic in self._task_of}
        sources = [TopicPartition(topic, partition) for topic, n in described.items() for partition in range(n)]
        self._consumer.assign(sources)
        ends = self._admin.end_offsets(sources)
        while any(self._consumer.position(source) < ends[source] for source in sources):
            self._apply_new_records(self._poll_s)

    def follow(self, stopping: threading.Event) -> None:
        """Apply new records until `stopping` is set, or the tables are closed."""
        while self._task_of and not (stopping.is_set() or self._closed.is_set()):
            self._apply_new_records(self._poll_s)

    def owns(self, damage: CorruptStateError) -> bool:
        """Return whether the damage is in stores of global tables."""
        return damage.folder is not None and self._folder in damage.folder.parents

    @property
    def tasks(self) -> list[Task]:
        """The tasks that fill the tables, one per sub-topology."""
        return list(dict.fromkeys(self._task_of.values()))

    @property
    def is_damaged(self) -> bool:
        """True if stores are damaged, so that the tables have to be loaded again."""
        return self._is_damaged

    def mark_damaged(self) -> None:
        """Note that stores of global tables are damaged."""
        self._is_damaged = True

    def run_query(self, query: Callable[[], T]) -> T:
        """Return the result of a query, during which the tables do not change."""
        with self.reading():
            return query()

    def close(self) -> None:
        """Close the stores."""
        self._closed.set()
        with self._lock.exclusive(), ExitStack() as closing:
            for state in self._states:
                closing.callback(state.close)

    def _apply_new_records(self, timeout: float) -> None:
        batches = self._consumer.poll(timeout, _ROWS)
        if not batches:
            return
        with self._lock.exclusive():
            if self._closed.is_set():
                return
            position = {source: self._consumer.position(source) - 1 for source in self._consumer.assignment()}
            for batch in batches:
                task = self._task_of[batch.source.topic]
                task.process(task.stamp(batch))
                task.report_skipped()
            for task in self.tasks:
                task.flush()
                task.state.persist(task.state.changes(), {}, position)


class _NoSinks:
    """The collector of a task without sinks."""

    def partitions(self, topic: str) -> int:
        raise TopologyError(f"a global table cannot write to {topic}")

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, LogError]:
        raise TopologyError(f"a global table cannot write to {topic}")

    def merges(self, topic: str) -> bool:
        raise TopologyError(f"a global table cannot write to {topic}")

    def has_ranks(self, topic: str) -> bool:
        raise TopologyError(f"a global table cannot write to {topic}")

    def send(self, topic: str, rows: EncodedRows, partitions: object) -> None:
        raise TopologyError(f"a global table cannot write to {topic}")
