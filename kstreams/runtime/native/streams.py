"""`KafkaStreams`: a topology at work in this process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from kstreams.batch import TopicPartition
from kstreams.clock import Clock, SystemClock
from kstreams.config import Config
from kstreams.errors import ConfigError, CorruptStateError, StateError
from kstreams.log.api import Log
from kstreams.processor.built import built
from kstreams.processor.layout import Layout, TaskPlan
from kstreams.processor.metrics import Measured, merged
from kstreams.processor.topology import Topology
from kstreams.runtime.native.assignment import assign
from kstreams.runtime.native.global_tables import GlobalTables
from kstreams.runtime.native.job import Job, open_job, shared_anew
from kstreams.runtime.native.lifecycle import Lifecycle, State, StateListener, ThreadState
from kstreams.runtime.native.locks import lock_application
from kstreams.runtime.native.new_topics import NewTopics
from kstreams.runtime.native.progress import Progress, progress_of, together
from kstreams.runtime.native.read_only_store import Owner, ReadOnlyStore
from kstreams.runtime.native.restore import OnRestore, RestoreProgress
from kstreams.runtime.native.stream_thread import StreamThread
from kstreams.runtime.native.topics import prepare_topics
from kstreams.runtime.native.uncaught import (
    StreamThreadExceptionResponse,
    UncaughtExceptionHandler,
    let_go,
    response_to,
    shut_down_client,
)

logger = logging.getLogger(__name__)


class TaskMetadata(NamedTuple):
    """A task and how far it is."""

    task_id: str
    next_offsets: Mapping[TopicPartition, int]


class ThreadMetadata(NamedTuple):
    """A stream thread, its tasks and its state."""

    name: str
    tasks: tuple[TaskMetadata, ...]
    state: ThreadState


class KafkaStreams:
    """Runs a topology in threads of this process. Kafka Streams: `KafkaStreams`.

    Parameters
    ----------
    topology : Topology or StreamsBuilder
        What to run.
    config : Config or mapping
        At least `application.id`.
    log : Log, optional
        Home of the topics; default: the embedded log in `log.dir`.
    clock : Clock, optional
    on_restore : callable, optional
        Told of every batch of a restore by a `RestoreProgress`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from kstreams.log import open_log
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with open_log(folder / "log") as log, log.admin() as admin, log.producer() as producer:
    ...     admin.create_topic("words")
    ...     producer.send("words", b"a", b"b")
    >>> topology = Topology().add_source("in", "words", key=str, value=str)
    >>> topology = topology.add_sink("out", "copies", "in", key=str, value=str)
    >>> settings = {"application.id": "copy", "log.dir": folder / "log", "state.dir": folder / "state"}
    >>> with KafkaStreams(topology, settings) as streams:
    ...     streams.start(until_end=True)
    ...     streams.wait()
    ...     streams.progress().records_out["copies"]
    True
    1
    """

    def __init__(
        self,
        topology: Any,
        config: Config | Mapping[str, Any],
        *,
        log: Log | None = None,
        clock: Clock | None = None,
        on_restore: OnRestore | None = None,
    ) -> None:
        self._config = Config.of(config)
        self._topology: Topology = built(topology, self._config, "KafkaStreams")
        self._config.application_id  # noqa: B018  (raises when it is not set)
        self._clock, self._given_log = clock or SystemClock(), log
        self._tell_of_restore = on_restore or _ignore
        self._restored: dict[tuple[str, str], int] = {}
        self._life = Lifecycle()
        self._job: Job | None = None
        self._threads: list[StreamThread] = []
        self._alive: set[str] = set()
        self._waiting: set[str] = set()
        self._final_progress: Progress | None = None
        self._change = threading.Lock()
        self._stop_globals = threading.Event()
        self._resources = ExitStack()
        self._former: list[Progress] = []  # of threads that were replaced
        self._awaits_topics = self._is_renewed = False
        self._exception_handler: UncaughtExceptionHandler = shut_down_client
        self.error: BaseException | None = None
        """What ended the application in state ERROR."""

    @property
    def state(self) -> State:
        """The state now."""
        return self._life.state

    def set_state_listener(self, listener: StateListener) -> None:
        """Tell `listener(new, old)` of every change of state; only before `start`.

        What a listener raises keeps no change from happening: a start ends with it, and `wait` raises it.
        """
        self._before_start()
        self._life.listener = listener

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Ask `handler(error)` what is to happen when an error ends a thread; only before `start`.

        Without a handler, the client shuts down. Kafka Streams: `setUncaughtExceptionHandler`.

        Parameters
        ----------
        handler : callable
            Answers with a `StreamThreadExceptionResponse`; it is called in the thread that dies.

        Raises
        ------
        StateError
            When the application was started.

        Examples
        --------
        >>> from kstreams import StreamThreadExceptionResponse as Response
        >>> def answer(error):
        ...     return Response.REPLACE_THREAD if isinstance(error, OSError) else Response.SHUTDOWN_CLIENT
        >>> KafkaStreams(Topology(), {"application.id": "app"}).set_uncaught_exception_handler(answer)
        """
        self._before_start()
        self._exception_handler = handler

    def start(self, *, once: bool = False, until_end: bool = False) -> None:
        """Check and create topics, load global tables, and start the threads.

        Parameters
        ----------
        once : bool
            Stop when everything that is in the input topics now, and all that follows from it, is processed.
        until_end : bool
            The same, but the input is then over for good: windows close, what waits is written.

        Raises
        ------
        KStreamsError
            When a topic is missing or does not fit, another process runs the application, or `start` was called before.
        """
        self._before_start()
        if once and until_end:
            raise ConfigError("once and until_end exclude each other: choose one")
        self._life.move(State.REBALANCING)
        try:
            self._prepare(once, until_end)
        except BaseException as error:
            self.error = error
            self._life.move(State.PENDING_ERROR)
            self._release(State.ERROR)
            raise
        self._start_threads()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds until the application has stopped; whether it has. Raises what ended it."""
        ended, error = self._life.wait_for_end(timeout), self.error or self._life.failure
        if error is not None and ended:
            raise error
        return ended

    def close(self, timeout: float | None = None) -> bool:
        """Commit, close and stop; whether that was done within `timeout` seconds (None waits as long as it takes)."""
        if self._life.move(State.PENDING_SHUTDOWN):
            for thread in self._threads:
                thread.stop()
            if not self._threads:
                self._end()
        return self._life.wait_for_end(timeout)

    def store(self, name: str) -> ReadOnlyStore:
        """A store for questions: all its local partitions as one, uncommitted updates included; or a global store.

        Raises
        ------
        StateError
            When the application is not RUNNING, or has no store of that name.
        """
        if self.state is not State.RUNNING:
            raise StateError(f"stores answer while the application is RUNNING; it is {self.state.value}")
        tasks = ((thread.questions, task.state.stores) for thread in self._threads for task in thread.tasks)
        tables = self._job.global_tables if self._job else None
        places: list[tuple[Owner, Mapping[str, Any]]] = [*tasks, *([(tables, tables.stores)] if tables else [])]
        owners = [(owner, stores[name]) for owner, stores in places if name in stores]
        if not owners:
            known = ", ".join(sorted(self._topology.stores)) or "none"
            raise StateError(f"there is no store {name!r}; the topology has: {known}")
        return ReadOnlyStore(name, owners)

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        """The threads with their tasks and positions."""
        return [
            ThreadMetadata(
                thread.name,
                tuple(TaskMetadata(task.id, dict(task.next_offsets)) for task in list(thread.tasks)),
                thread.state,
            )
            for thread in self._threads
        ]

    def metrics(self) -> dict[tuple[str, str], Measured]:
        """What the sensors of processors have seen in all tasks together, by (operator, sensor)."""
        return merged(task.task.sensors for thread in self._threads for task in list(thread.tasks))

    def progress(self) -> Progress:
        """Counters since `start`, and the lag; after the end, as they were then."""
        with self._change:
            if self._final_progress is not None:
                return self._final_progress
            return self._count()

    def _count(self) -> Progress:
        job, restored = self._job, sum(self._restored.values())
        now = progress_of(self._threads, job.admin, restored, job.rebuilds.count) if job else progress_of([], None)
        return together(now, self._former)

    def _restoring(self, progress: RestoreProgress) -> None:
        self._restored[progress.task, progress.store] = progress.restored
        self._tell_of_restore(progress)

    def __enter__(self) -> KafkaStreams:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _before_start(self) -> None:
        if self.state is not State.CREATED:
            raise StateError(f"the application is {self.state.value}: this can be done once, before it is started")

    def _prepare(self, once: bool, until_end: bool) -> None:
        self._config.warn_of_unused()
        for lock in lock_application(self._config):
            self._resources.callback(lock.release)
        parts = self._topology, self._config, self._clock, self._given_log, self._restoring
        self._job = job = open_job(*parts, self._resources, once=once, until_end=until_end)
        self._make_threads(job)
        if job.bounds is None:
            self._start_following(job.global_tables)
            topics = NewTopics(self._topology, self._config, job.log)
            self._awaits_topics = topics.are_awaited
            if self._awaits_topics:
                threading.Thread(target=self._look_for_topics, args=(topics, job.layout), daemon=True).start()

    def _start_following(self, tables: GlobalTables) -> None:
        threading.Thread(target=self._follow, args=(tables,), daemon=True).start()

    def _make_threads(self, job: Job) -> None:
        shares = assign(job.layout.tasks, self._config["num.stream.threads"], job.aligned)
        client = self._config["client.id"] or self._config.application_id
        for index, plans in enumerate(shares, 1):
            if plans:
                self._threads.append(StreamThread(f"{client}-StreamThread-{index}", index, plans, job))
        self._alive = {thread.name for thread in self._threads}
        self._waiting = set(self._alive)

    def _start_threads(self) -> None:
        for thread in list(self._threads):
            threading.Thread(target=self._run, args=(thread,), name=thread.name, daemon=True).start()
        if not self._threads and self._awaits_topics:
            self._life.move(State.RUNNING)
        elif not self._threads:
            self._end()

    def _look_for_topics(self, topics: NewTopics, layout: Layout) -> None:
        try:
            topics.watch(layout, self._stop_globals, self._begin_anew)
        except BaseException as error:
            if not self._stop_globals.is_set():
                logger.error("the search for new topics failed: %s", error)
                self._fail(error)
                if not self._alive:
                    self._end()

    def _begin_anew(self) -> None:
        """Stop the threads, which commit, and share out what there is now: other topics, other global tables."""
        logger.info("the tasks are shared out anew")
        with self._change:
            self._is_renewed = True
            idle = not self._alive
            for thread in self._threads:
                thread.stop()
        if idle and self._life.is_alive() and not self._has_gone_on():
            self._end()

    def _go_on(self) -> None:
        """Run the tasks of the topics that there are now."""
        assert self._job is not None
        self._life.move(State.REBALANCING)
        with self._job.log.admin() as admin:
            layout = prepare_topics(self._topology, self._config, admin)
        tables = self._job.global_tables
        with self._change:
            self._former.append(progress_of(self._threads, None))
            self._is_renewed, self._threads = False, []
            self._job = shared_anew(self._job, layout, self._resources)
            self._make_threads(self._job)
        if self._job.global_tables is not tables and self._job.bounds is None:
            self._start_following(self._job.global_tables)
        self._start_threads()

    def _run(self, thread: StreamThread) -> None:
        """Run a thread, and the threads that replace it."""
        running: StreamThread | None = thread
        try:
            while running is not None:
                running = self._replacement(running) if self._dies(running) else None
        except BaseException as error:
            self._fail(error)
        finally:
            self._thread_ended(thread)

    def _dies(self, thread: StreamThread) -> bool:
        """Run a thread to its end; whether an error ended it and another thread is to go on."""
        try:
            return self._rebuilding(lambda: thread.run(lambda: self._is_running(thread)), thread.plans)
        except BaseException as error:
            logger.error("%s died: %s", thread.name, error)
            replace = self._answer(error)
            let_go(error)
            return replace

    def _rebuilding(self, work: Callable[[], None], plans: Sequence[TaskPlan]) -> bool:
        """Do work; whether it came upon damaged stores and is to begin anew, since they are restored then."""
        try:
            work()
        except CorruptStateError as damage:
            assert self._job is not None
            let_go(damage)
            self._job.rebuilds.clear_away(damage, plans, self._job.global_tables)
            if self._job.global_tables.is_damaged:
                self._begin_anew()  # all threads work with them
            return self._life.is_alive() and not self._job.global_tables.is_damaged
        return False

    def _answer(self, error: BaseException) -> bool:
        """Do what the user's handler says; whether the thread is to be replaced."""
        response = response_to(error, self._exception_handler)
        if response is StreamThreadExceptionResponse.REPLACE_THREAD and self._life.is_alive():
            return True
        self._fail(error)
        if response is StreamThreadExceptionResponse.SHUTDOWN_APPLICATION and self._job is not None:
            self._job.shutdown.call()
        return False

    def _replacement(self, thread: StreamThread) -> StreamThread:
        """A thread with the same tasks, built anew; it goes on from the last commit."""
        assert self._job is not None
        new = StreamThread(thread.name, thread.index, thread.plans, self._job)
        with self._change:
            self._former.append(progress_of([thread], None))
            self._threads[self._threads.index(thread)] = new
            self._waiting.add(new.name)
        if not self._life.move(State.REBALANCING) and not self._life.is_alive():
            new.stop()  # a stop came in between
        return new

    def _is_running(self, thread: StreamThread) -> None:
        with self._change:
            self._waiting.discard(thread.name)
            all_running = not self._waiting
        if all_running:
            self._life.move(State.RUNNING)
        if self._life.failure is not None:
            raise self._life.failure

    def _fail(self, error: BaseException) -> None:
        with self._change:
            self.error = self.error or error
        self._life.move(State.PENDING_ERROR)
        for thread in self._threads:
            thread.stop()

    def _thread_ended(self, thread: StreamThread) -> None:
        with self._change:
            self._alive.discard(thread.name)
            last, goes_on = not self._alive, self._is_renewed and self._life.is_alive()
        if last and not (goes_on and self._has_gone_on()):
            self._end()

    def _has_gone_on(self) -> bool:
        try:
            self._go_on()
        except BaseException as error:
            logger.error("the tasks cannot be shared out anew: %s", error)
            self._fail(error)
            return False
        return True

    def _end(self) -> None:
        self._life.move(State.PENDING_SHUTDOWN)
        self._release(State.NOT_RUNNING if self.error is None else State.ERROR)

    def _release(self, final: State) -> None:
        self._stop_globals.set()
        try:
            with self._change, self._resources:
                self._final_progress = self._count()
        except BaseException as error:
            logger.error("closing failed: %s", error)
            self.error, final = self.error or error, State.ERROR
            self._life.move(State.PENDING_ERROR)
        self._life.move(final)

    def _follow(self, tables: GlobalTables) -> None:
        try:
            self._rebuilding(lambda: tables.follow(self._stop_globals), ())
        except BaseException as error:
            if not self._stop_globals.is_set():
                logger.error("the thread of the global tables died: %s", error)
                if self._answer(error):
                    self._fail(error)  # it cannot be replaced


def _ignore(event: RestoreProgress) -> None:
    """Nobody asked to be told."""
