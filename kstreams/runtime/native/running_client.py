"""`RunningClient`: the threads of a started application in this process. It starts, replaces and stops them."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic

from kstreams.errors import CorruptStateError, RegistryUnavailableError, UncertainCommitError
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.group.member import GroupMember
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.local_application import LocalApplication
from kstreams.runtime.native.metrics.former_threads import FormerThreads
from kstreams.runtime.native.observation import current_operators, observe
from kstreams.runtime.native.progress import Progress, progress_of, with_former_threads
from kstreams.runtime.native.runtime_context import RuntimeContext, with_layout
from kstreams.runtime.native.state.global_tables import GlobalTables
from kstreams.runtime.native.state.restore import RestoreProgress
from kstreams.runtime.native.tasks.membership import group_member, ungrouped_commits
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.committer import OUT_OF_GROUP, GroupCommits
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.runtime.native.topics import SourceMonitor, prepare_topics
from kstreams.runtime.native.uncaught_exceptions import StreamThreadExceptionResponse, clear_frames, response_to

logger = logging.getLogger(__name__)

_WAIT_S = 0.01


class RunningClient:
    """A started application, whose tasks run in threads.

    Parameters
    ----------
    application : LocalApplication
    context : RuntimeContext
    restores : dict
        The progress of the last restore of each store, by task and store.
    resources : ExitStack
        Closed when the application ends.

    Attributes
    ----------
    context : RuntimeContext
        The parts that all threads share. Replaced when tasks are assigned again.
    manager : TaskManager
        The manager of the tasks. Replaced with the context.
    threads : list of StreamThread
        The running threads.
    member : GroupMember or None
        This process's membership in the application's group. None in bounded runs.
    failed_threads : int
        The number of threads that an error has ended.
    former_threads : FormerThreads
        The counters of threads and tasks that no longer run here.
    """

    def __init__(
        self,
        application: LocalApplication,
        context: RuntimeContext,
        restores: dict[tuple[str, str], RestoreProgress],
        resources: ExitStack,
    ) -> None:
        self.application = application
        self.restores = restores
        self.context = context
        self.threads: list[StreamThread] = []
        self.failed_threads = 0
        self.former_threads = FormerThreads()
        self._lifecycle = application.lifecycle
        self._resources = resources
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._alive_threads: set[str] = set()
        self._is_reassigning = False
        self._progress: Callable[[bool], Progress] = self._current_progress
        self.member = None if self._is_bounded else self._join_group()
        self._create_threads()

    def start(self) -> None:
        """Start the threads."""
        _start_daemon(observe, self.context, lambda: self.threads, lambda: self.progress().lag, self._stopping)
        if not self._is_bounded:
            self._start_global_thread()
            _start_daemon(self._watch_sources, self.context)
            self.context.connectors.start(self._fail)
        self._start_threads()

    def stop(self, *, leave_group: bool | None = None) -> None:
        """Have the threads commit and end. See `KafkaStreams.close`."""
        if self.application.close(leave_group, self.context.environment.log.abilities):
            threads = self.threads
            for thread in threads:
                thread.stop()
            if not threads:
                self._end()

    def progress(self, *, with_lag: bool = True) -> Progress:
        """Return the counters since the start, and the lag from the home of topics. After the end, the last values."""
        with self._lock:
            return self._progress(with_lag)

    def _current_progress(self, with_lag: bool) -> Progress:
        restored = sum(restore.restored for restore in self.restores.values())
        admin = self.context.environment.admin if with_lag else None
        present = progress_of(self.threads, admin, restored, self.context.state.rebuilds.count)
        reassigned = self.context.environment.assignments.repeated
        return with_former_threads(dataclasses.replace(present, reassigned=reassigned), self.former_threads.progress)

    @property
    def _is_bounded(self) -> bool:
        return self.context.topology.bounds is not None

    def _join_group(self) -> GroupMember:
        member = group_member(self.context.environment, self.context.state.folder, self._fail)
        self._resources.callback(lambda: member.close(for_good=self.application.leaves_for_good))
        return member

    def _create_threads(self) -> None:
        numbers = range(1, self.application.config["num.stream.threads"] + 1)
        self.manager = manager = TaskManager(self.context, numbers, self._tasks_changed)
        self._resources.callback(manager.close)
        self._committer = self._create_committer()
        shares: dict[int, list[TaskPlan]] = {number: [] for number in numbers}
        if self._is_bounded:
            manager.assign(manager.tasks)
            shares = {number: plans for number in numbers if (plans := manager.plans(number))}
        # One assignment, because a concurrent stop checks whether there are threads.
        self.threads = [self._new_thread(number, plans) for number, plans in shares.items()]
        self._alive_threads = {thread.name for thread in self.threads}

    def _create_committer(self) -> GroupCommits:
        """Return the object that commits offsets: the member of the group, or in a bounded run one without a group."""
        if self.member is not None:
            return self.member
        ungrouped = ungrouped_commits(self.context.environment)
        self._resources.callback(ungrouped.close)
        return ungrouped

    def _new_thread(self, number: int, plans: Sequence[TaskPlan] = ()) -> StreamThread:
        name = self.context.environment.settings.stream_thread(number)
        return StreamThread(
            name,
            number,
            self.context,
            self.manager,
            self._committer,
            plans,
            paused=self.application.paused,
            leaving=self.former_threads.task_leaving,
        )

    def add_thread(self) -> str | None:
        """Start another thread and return its name, or None in a bounded run or if the application does not run."""
        member = self.member
        if member is None or not self._lifecycle.is_alive():
            return None
        with self._lock:
            thread = self._new_thread(len(self.threads) + 1)
            self.threads = [*self.threads, thread]
            self._alive_threads.add(thread.name)
        member.resize(len(self.threads))
        self.manager.add(thread)
        _start_daemon(self._run, thread, name=thread.name)
        return thread.name

    def remove_thread(self, timeout: float) -> str | None:
        """Stop the newest thread when others have its tasks. Return its name, or None if none can be removed."""
        manager = self.manager
        member = self.member
        threads = self.threads
        if member is None or len(threads) < 2 or not self._lifecycle.is_alive():
            return None
        thread = threads[-1]
        deadline = monotonic() + timeout
        manager.remove(thread.index)
        while manager.share(thread.index):
            if monotonic() > deadline:
                operators = current_operators(self.threads)
                raise TimeoutError(f"{thread.name} has not released its tasks within {timeout:g} s: {operators}")
            self._stopping.wait(_WAIT_S)
        with self._lock, self.former_threads.leaving([thread]):
            self.threads = [other for other in self.threads if other is not thread]
        thread.stop()
        manager.removed(thread.index)
        member.resize(len(self.threads))
        return thread.name

    def _start_threads(self) -> None:
        manager = self.manager
        threads = list(self.threads)  # a copy: a thread may end at once, and a reassignment replaces `self.threads`
        if not self._lifecycle.is_alive():  # the application was closed in the meantime
            for thread in threads:
                thread.stop()
        manager.start(threads)
        for thread in threads:
            _start_daemon(self._run, thread, name=thread.name)
        if self.member is not None:
            self.member.serve(manager)
        if not threads:
            self._end()

    def _tasks_changed(self) -> None:
        """Move to RUNNING if all tasks run, and to REBALANCING if some do not yet."""
        self._lifecycle.move(State.RUNNING if self.manager.is_settled() else State.REBALANCING)
        if self._lifecycle.failure is not None and self.application.error is None:
            self._fail(self._lifecycle.failure)

    def _watch_sources(self, context: RuntimeContext) -> None:
        interval_s = self.application.config["metadata.max.age.ms"] / 1000
        monitor = SourceMonitor(self.application.topology, interval_s, context.environment.log)
        try:
            monitor.watch(context.topology.layout, self._stopping, self._reassign)
        except BaseException as error:
            if not self._stopping.is_set():
                logger.error("the search for new topics and partitions has failed: %s", error)
                self._fail(error)
                if not self._alive_threads:
                    self._end()

    def _reassign(self) -> None:
        """Stop the threads, which commit, and assign tasks again, because topics or global tables have changed."""
        logger.info("the tasks are assigned again")
        with self._lock:
            self._is_reassigning = True
            is_idle = not self._alive_threads
            for thread in self.threads:
                thread.stop()
        if is_idle and self._lifecycle.is_alive() and not self._try_restart():
            self._end()

    def _restart_threads(self) -> None:
        """Run the tasks of the topics that exist now."""
        former_context = self.context
        self._lifecycle.move(State.REBALANCING)
        with former_context.environment.log.admin() as admin:
            layout = prepare_topics(self.application.topology, self.application.config, admin)
        self.manager.close()
        with self._lock, self.former_threads.leaving(self.threads):
            self._is_reassigning = False
            self.context = with_layout(former_context, layout, self._resources)
            self._create_threads()
        is_reloaded = self.context.topology.global_tables is not former_context.topology.global_tables
        if is_reloaded and not self._is_bounded:
            self._start_global_thread()
        self._start_threads()

    def _start_global_thread(self) -> None:
        name = self.context.environment.settings.global_thread
        _start_daemon(self._update_global_tables, self.context.topology.global_tables, name=name)

    def _run(self, thread: StreamThread) -> None:
        """Run a thread, and the threads that replace it."""
        running: StreamThread | None = thread
        try:
            while running is not None:
                running = self._replacement(running) if self._needs_replacement(running) else None
        except BaseException as error:
            self._fail(error)
        finally:
            self._thread_ended(thread)

    def _needs_replacement(self, thread: StreamThread) -> bool:
        """Run a thread to its end. Return True if another thread has to replace it."""
        try:
            return self._run_until_damage(thread.run)
        except BaseException as error:
            if isinstance(error, self._recoverable_errors()):
                logger.warning("%s resumes from the last commit: %s", thread.name, error)
                clear_frames(error)
                return self._lifecycle.is_alive()
            self.failed_threads += 1
            logger.error("%s died: %s", thread.name, error)
            is_replaced = self._handle_exception(error)
            clear_frames(error)
            return is_replaced

    def _recoverable_errors(self) -> tuple[type[BaseException], ...]:
        """Return the errors that end a thread but not the application: a new thread resumes from the last commit."""
        abandoned_requests = () if self._lifecycle.is_alive() else (RegistryUnavailableError,)
        return (UncertainCommitError, *abandoned_requests, *(() if self.member is None else OUT_OF_GROUP))

    def _run_until_damage(self, work: Callable[[], None]) -> bool:
        """Run `work`. Return True if it found damaged stores and has to start again, which restores them."""
        try:
            work()
        except CorruptStateError as damage:
            context = self.context
            clear_frames(damage)
            context.state.rebuilds.delete_damaged(damage, context.topology.layout.tasks, context.topology.global_tables)
            if context.topology.global_tables.is_damaged:
                self._reassign()  # all threads read global tables
            return self._lifecycle.is_alive() and not context.topology.global_tables.is_damaged
        return False

    def _handle_exception(self, error: BaseException) -> bool:
        """Do what the user's exception handler returns. Return True if the thread has to be replaced."""
        response = response_to(error, self.application.exception_handler)
        if response is StreamThreadExceptionResponse.REPLACE_THREAD and self._lifecycle.is_alive():
            return True
        self._fail(error)
        if response is StreamThreadExceptionResponse.SHUTDOWN_APPLICATION and self.member is not None:
            self.member.shut_down_others()
        return False

    def _replacement(self, thread: StreamThread) -> StreamThread:
        """Return a new thread with the same tasks. It resumes from the last commit."""
        replacement = self._new_thread(thread.index, thread.plans)
        with self._lock, self.former_threads.leaving([thread]):
            self.threads[self.threads.index(thread)] = replacement
        self.manager.replace(replacement)
        if not self._lifecycle.is_alive():  # the application was closed in the meantime
            replacement.stop()
        return replacement

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self.application.error = self.application.error or error
        self._lifecycle.move(State.PENDING_ERROR)
        for thread in self.threads:
            thread.stop()
        self.application.registry.give_up()

    def _thread_ended(self, thread: StreamThread) -> None:
        with self._lock:
            self._alive_threads.discard(thread.name)
            is_last = not self._alive_threads
            is_restarting = self._is_reassigning and self._lifecycle.is_alive()
        if is_last and not (is_restarting and self._try_restart()):
            self._end()

    def _try_restart(self) -> bool:
        try:
            self._restart_threads()
        except BaseException as error:
            logger.error("the tasks cannot be assigned again: %s", error)
            self._fail(error)
            return False
        return True

    def _end(self) -> None:
        self._end_connectors()
        self._lifecycle.move(State.PENDING_SHUTDOWN)
        self._release(State.NOT_RUNNING if self.application.error is None else State.ERROR)

    def _end_connectors(self) -> None:
        """Let the connectors commit and end. In a bounded run, the sinks first write what the tasks have written."""
        connectors = self.context.connectors
        try:
            if self._is_bounded and self.application.error is None:
                connectors.write_sinks()
            connectors.stop()
        except BaseException as error:
            logger.error("a connector has failed: %s", error)
            self._fail(error)

    def _release(self, final: State) -> None:
        self._stopping.set()
        try:
            with self._lock, self._resources:
                final_progress = self._current_progress(True)
                self._progress = lambda with_lag: final_progress
        except BaseException as error:
            logger.error("the application could not release its resources: %s", error)
            self.application.error = self.application.error or error
            final = State.ERROR
            self._lifecycle.move(State.PENDING_ERROR)
        self._lifecycle.move(final)

    def _update_global_tables(self, tables: GlobalTables) -> None:
        try:
            self._run_until_damage(lambda: tables.follow(self._stopping))
        except BaseException as error:
            if not self._stopping.is_set():
                logger.error("the thread of the global tables died: %s", error)
                if self._handle_exception(error):
                    self._fail(error)  # the thread of global tables cannot be replaced


def _start_daemon(work: Callable[..., object], *arguments: object, name: str | None = None) -> None:
    """Run `work` in a daemon thread."""
    threading.Thread(target=work, args=arguments, name=name, daemon=True).start()
