"""`Client`: starts, replaces and ends the threads of an application in this process."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic

from kstreams.config import Config
from kstreams.errors import (
    ConfigError,
    CorruptStateError,
    RegistryUnavailableError,
    StateError,
    UncertainCommitError,
)
from kstreams.kernel.clock import Clock
from kstreams.log.api import Ability, Log
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.bounded_run import RunEnd
from kstreams.runtime.native.group.member import GroupMember
from kstreams.runtime.native.lifecycle import Lifecycle, State
from kstreams.runtime.native.metrics.former_threads import FormerThreads
from kstreams.runtime.native.observation import observe, places
from kstreams.runtime.native.progress import Progress, progress_of, with_former
from kstreams.runtime.native.runtime_context import RuntimeContext, consumer_settings, open_context, with_layout
from kstreams.runtime.native.state.global_tables import GlobalTables
from kstreams.runtime.native.state.locks import lock_alone, lock_shared
from kstreams.runtime.native.state.restore import OnRestore, RestoreProgress
from kstreams.runtime.native.tasks.membership import group_member, ungrouped_commits
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.processing_guarantee import OUT_OF_GROUP, GroupCommits
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.runtime.native.topics import SourceMonitor, prepare_topics
from kstreams.runtime.native.uncaught_exceptions import (
    StreamThreadExceptionResponse,
    UncaughtExceptionHandler,
    clear_frames,
    response_to,
    shut_down_client,
)

logger = logging.getLogger(__name__)

_WAIT_S = 0.01


class Client:
    """Runs the tasks of a topology in threads.

    Parameters
    ----------
    topology : Topology
    config : Config
    clock : Clock
    log : Log, optional
        Home of the topics; default: the embedded log in `log.dir`.
    on_restore : callable
        Called with the progress of a restore after every batch.

    Attributes
    ----------
    topology : Topology
        With serdes that know their topics.
    life : Lifecycle
        The state, and the listener of state changes.
    threads : list of StreamThread
        The running threads.
    context : RuntimeContext or None
        The parts that all threads share. None before the start.
    error : BaseException or None
        The error that ended the application in state ERROR.
    died : int
        The number of threads that an error has ended.
    restores : dict
        The progress of the last restore of each store, by task and store.
    exception_handler : callable
        Called when an error ends a thread.
    manager : TaskManager or None
        The manager of the tasks. None before the start.
    member : GroupMember or None
        This process's membership in the application's group. None before `start()` and in bounded runs.
    paused : Event
        Set while the application is paused.
    former : FormerThreads
        The counters of threads and tasks that no longer run here.
    """

    def __init__(
        self, topology: Topology, config: Config, clock: Clock, log: Log | None, on_restore: OnRestore
    ) -> None:
        self._registry = ApplicationRegistry(config)
        self.topology = topology.bound(config, self._registry)
        self.config = config
        self._clock = clock
        self._given_log = log
        self._on_restore = on_restore
        self.restores: dict[tuple[str, str], RestoreProgress] = {}
        self.life = Lifecycle()
        self.threads = list[StreamThread]()
        self.context: RuntimeContext | None = None
        self.error: BaseException | None = None
        self.died = 0
        self.exception_handler: UncaughtExceptionHandler = shut_down_client
        self._alive: set[str] = set()
        self._final_progress: Progress | None = None
        self._change = threading.Lock()
        self._stop_globals = threading.Event()
        self.paused = threading.Event()
        self._resources = ExitStack()
        self.former = FormerThreads()
        self._is_reassigning = False
        self.manager: TaskManager | None = None
        self.member: GroupMember | None = None
        self._leaves_for_good = False

    def start(self, end: RunEnd = RunEnd.NEVER) -> None:
        """Check and create topics, load global tables, and start the threads."""
        self.life.move(State.REBALANCING)
        try:
            self._prepare(end)
        except BaseException as error:
            self.error = error
            self.life.move(State.PENDING_ERROR)
            self._release(State.ERROR)
            raise
        self._start_threads()

    def stop(self, *, leave_group: bool | None = None) -> None:
        """Let the threads commit and end. See `KafkaStreams.close`."""
        if leave_group is not None:
            self._leaves_for_good = self._may_leave(leave_group)
        if self.life.move(State.PENDING_SHUTDOWN):
            threads = self.threads
            for thread in threads:
                thread.stop()
            self._registry.give_up()
            if not threads:
                self._end()

    def _may_leave(self, leave_group: bool) -> bool:
        """Return `leave_group`. Raises ConfigError if the group does not allow it."""
        instance = consumer_settings(self.config, "main").get("group.instance.id")
        if not leave_group and instance is None:
            raise ConfigError(
                "only a static member remains in the group of its application when it is closed: set "
                "consumer.group.instance.id, or leave out leave_group=False"
            )
        is_able = self.context is None or Ability.LEAVES_OF_STATIC_MEMBERS in self.context.environment.log.abilities
        if leave_group and instance is not None and not is_able:
            raise ConfigError(
                f"the static member {instance!r} cannot leave the group of its application: Kafka's client has no "
                "request for it. Leave out leave_group=True: its session ends after session.timeout.ms"
            )
        return leave_group

    def progress(self, *, with_lag: bool = True) -> Progress:
        """Return the counters since the start, and the lag from the home of topics. After the end, the last values."""
        with self._change:
            return self._final_progress or self._count(with_lag)

    def _count(self, with_lag: bool = True) -> Progress:
        context = self.context
        restored = sum(restore.restored for restore in self.restores.values())
        admin = context.environment.admin if context and with_lag else None
        now = (
            progress_of(self.threads, admin, restored, context.state.rebuilds.count)
            if context
            else progress_of([], None)
        )
        reassigned = context.environment.assignments.repeated if context else 0
        return with_former(dataclasses.replace(now, reassigned=reassigned), self.former.progress)

    def _restoring(self, progress: RestoreProgress) -> None:
        self.restores[progress.task, progress.store] = progress
        self._on_restore(progress)

    def _prepare(self, end: RunEnd) -> None:
        self.config.warn_of_unused()
        folder = lock_shared(self.config) if end is RunEnd.NEVER else lock_alone(self.config)
        self._resources.callback(folder.release)
        self._resources.callback(self._registry.close)
        self.context = context = open_context(
            self.topology,
            self.config,
            self._clock,
            self._given_log,
            self._restoring,
            self._resources,
            end=end,
            folder=folder.path,
        )
        self._make_threads(context)
        _start(observe, context, lambda: self.threads, lambda: self.progress().lag, self._stop_globals)
        if context.topology.bounds is None:
            _start(self._follow, context.topology.global_tables, name=context.environment.settings.global_thread)
            _start(self._watch_sources, context)

    def _make_threads(self, context: RuntimeContext) -> None:
        numbers = range(1, self.config["num.stream.threads"] + 1)
        self.manager = manager = TaskManager(context, numbers, self._tasks_changed)
        self._resources.callback(manager.close)
        self._committer = self._group(context)
        shares: dict[int, list[TaskPlan]] = {number: [] for number in numbers}
        if context.topology.bounds is not None:
            manager.assign(manager.tasks)
            shares = {number: plans for number in numbers if (plans := manager.plans(number))}
        # Assigned at once: a concurrent stop checks whether there are threads.
        self.threads = [self._new_thread(number, context, manager, plans) for number, plans in shares.items()]
        self._alive = {thread.name for thread in self.threads}

    def _new_thread(
        self, number: int, context: RuntimeContext, manager: TaskManager, plans: Sequence[TaskPlan] = ()
    ) -> StreamThread:
        name = context.environment.settings.stream_thread(number)
        return StreamThread(
            name, number, context, manager, self._committer, plans, paused=self.paused, leaving=self.former.task_leaving
        )

    def _started(self) -> tuple[RuntimeContext, TaskManager]:
        """Return the context and the task manager. Raises StateError before the start."""
        if self.context is None or self.manager is None:
            raise StateError("the application was not started: call start() first")
        return self.context, self.manager

    def add_thread(self) -> str | None:
        """Start another thread and return its name, or None in a bounded run or if the application does not run."""
        context = self.context
        manager = self.manager
        member = self.member
        if context is None or manager is None or member is None or not self.life.is_alive():
            return None
        with self._change:
            thread = self._new_thread(len(self.threads) + 1, context, manager)
            self.threads = [*self.threads, thread]
            self._alive.add(thread.name)
        member.resize(len(self.threads))
        manager.add(thread)
        _start(self._run, thread, name=thread.name)
        return thread.name

    def remove_thread(self, timeout: float) -> str | None:
        """Stop the newest thread when others have its tasks. Return its name, or None if no thread can be removed."""
        manager = self.manager
        member = self.member
        threads = self.threads
        if manager is None or member is None or len(threads) < 2 or not self.life.is_alive():
            return None
        thread = threads[-1]
        until = monotonic() + timeout
        manager.remove(thread.index)
        while manager.share(thread.index):
            if monotonic() > until:
                raise TimeoutError(
                    f"{thread.name} has not given back its tasks within {timeout:g} s: {places(self.threads)}"
                )
            self._stop_globals.wait(_WAIT_S)
        with self._change, self.former.leaving([thread]):
            self.threads = [other for other in self.threads if other is not thread]
        thread.stop()
        manager.removed(thread.index)
        member.resize(len(self.threads))
        return thread.name

    def _group(self, context: RuntimeContext) -> GroupCommits:
        """Return the object that commits: a member of the group, or a bounded run without a group."""
        if context.topology.bounds is not None:
            alone = ungrouped_commits(context.environment)
            self._resources.callback(alone.close)
            return alone
        if self.member is None:
            self.member = group_member(context.environment, self._fail)
            self._resources.callback(lambda member: member.close(for_good=self._leaves_for_good), self.member)
        return self.member

    def _start_threads(self) -> None:
        _, manager = self._started()
        threads = list(self.threads)  # a thread may end at once, and the tasks be assigned again
        manager.start(threads)
        for thread in threads:
            _start(self._run, thread, name=thread.name)
        if self.member is not None:
            self.member.serve(manager)
        if not threads:
            self._end()

    def _tasks_changed(self) -> None:
        """Move to RUNNING if all tasks run, and to REBALANCING if some do not yet."""
        _, manager = self._started()
        self.life.move(State.RUNNING if manager.is_settled() else State.REBALANCING)
        if self.life.failure is not None and self.error is None:
            self._fail(self.life.failure)

    def _watch_sources(self, context: RuntimeContext) -> None:
        monitor = SourceMonitor(self.topology, self.config["metadata.max.age.ms"] / 1000, context.environment.log)
        try:
            monitor.watch(context.topology.layout, self._stop_globals, self._reassign)
        except BaseException as error:
            if not self._stop_globals.is_set():
                logger.error("the search for new topics and partitions failed: %s", error)
                self._fail(error)
                if not self._alive:
                    self._end()

    def _reassign(self) -> None:
        """Stop the threads, which commit, and assign tasks again, because topics or global tables have changed."""
        logger.info("the tasks are assigned again")
        with self._change:
            self._is_reassigning = True
            idle = not self._alive
            for thread in self.threads:
                thread.stop()
        if idle and self.life.is_alive() and not self._has_restarted():
            self._end()

    def _restart_threads(self) -> None:
        """Run the tasks of the topics that exist now."""
        former_context, manager = self._started()
        self.life.move(State.REBALANCING)
        with former_context.environment.log.admin() as admin:
            layout = prepare_topics(self.topology, self.config, admin)
        manager.close()
        with self._change, self.former.leaving(self.threads):
            self._is_reassigning = False
            self.context = context = with_layout(former_context, layout, self._resources)
            self._make_threads(context)
        if (
            context.topology.global_tables is not former_context.topology.global_tables
            and context.topology.bounds is None
        ):
            _start(self._follow, context.topology.global_tables, name=context.environment.settings.global_thread)
        if not self.life.is_alive():  # a stop came in between
            for thread in self.threads:
                thread.stop()
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
        """Run a thread to its end. Return True if an error ended it and another thread has to take over."""
        try:
            return self._rebuilding(thread.run)
        except BaseException as error:
            if isinstance(error, self._passing_errors()):
                logger.warning("%s goes on from the last commit: %s", thread.name, error)
                clear_frames(error)
                return self.life.is_alive()
            self.died += 1
            logger.error("%s died: %s", thread.name, error)
            replace = self._answer(error)
            clear_frames(error)
            return replace

    def _passing_errors(self) -> tuple[type[BaseException], ...]:
        """Return the errors that end a thread but not the application: a new thread resumes from the last commit."""
        given_up = () if self.life.is_alive() else (RegistryUnavailableError,)
        return (UncertainCommitError, *given_up, *(() if self.member is None else OUT_OF_GROUP))

    def _rebuilding(self, work: Callable[[], None]) -> bool:
        """Run `work`. Return True if it met damaged stores and has to be started again, which restores them."""
        try:
            work()
        except CorruptStateError as damage:
            context, _ = self._started()
            clear_frames(damage)
            context.state.rebuilds.delete_damaged(damage, context.topology.layout.tasks, context.topology.global_tables)
            if context.topology.global_tables.is_damaged:
                self._reassign()  # all threads read global tables
            return self.life.is_alive() and not context.topology.global_tables.is_damaged
        return False

    def _answer(self, error: BaseException) -> bool:
        """Follow the user's exception handler. Return True if the thread has to be replaced."""
        response = response_to(error, self.exception_handler)
        if response is StreamThreadExceptionResponse.REPLACE_THREAD and self.life.is_alive():
            return True
        self._fail(error)
        if response is StreamThreadExceptionResponse.SHUTDOWN_APPLICATION and self.member is not None:
            self.member.shut_down_others()
        return False

    def _replacement(self, thread: StreamThread) -> StreamThread:
        """Return a new thread with the same tasks. It resumes from the last commit."""
        context, manager = self._started()
        new = self._new_thread(thread.index, context, manager, thread.plans)
        with self._change, self.former.leaving([thread]):
            self.threads[self.threads.index(thread)] = new
        manager.replace(new)
        if not self.life.is_alive():
            new.stop()  # a stop came in between
        return new

    def _fail(self, error: BaseException) -> None:
        with self._change:
            self.error = self.error or error
        self.life.move(State.PENDING_ERROR)
        for thread in self.threads:
            thread.stop()
        self._registry.give_up()

    def _thread_ended(self, thread: StreamThread) -> None:
        with self._change:
            self._alive.discard(thread.name)
            last = not self._alive
            goes_on = self._is_reassigning and self.life.is_alive()
        if last and not (goes_on and self._has_restarted()):
            self._end()

    def _has_restarted(self) -> bool:
        try:
            self._restart_threads()
        except BaseException as error:
            logger.error("the tasks cannot be assigned again: %s", error)
            self._fail(error)
            return False
        return True

    def _end(self) -> None:
        self.life.move(State.PENDING_SHUTDOWN)
        self._release(State.NOT_RUNNING if self.error is None else State.ERROR)

    def _release(self, final: State) -> None:
        self._stop_globals.set()
        try:
            with self._change, self._resources:
                self._final_progress = self._count()
        except BaseException as error:
            logger.error("closing failed: %s", error)
            self.error = self.error or error
            final = State.ERROR
            self.life.move(State.PENDING_ERROR)
        self.life.move(final)

    def _follow(self, tables: GlobalTables) -> None:
        try:
            self._rebuilding(lambda: tables.follow(self._stop_globals))
        except BaseException as error:
            if not self._stop_globals.is_set():
                logger.error("the thread of the global tables died: %s", error)
                if self._answer(error):
                    self._fail(error)  # it cannot be replaced


def _start(work: Callable[..., object], *arguments: object, name: str | None = None) -> None:
    """Run `work` in a daemon thread."""
    threading.Thread(target=work, args=arguments, name=name, daemon=True).start()
