"""`StreamThread`: polls, processes, punctuates and commits its tasks in a loop."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic

from kstreams.errors import LogError
from kstreams.kernel.clock import Clock
from kstreams.metrics.samples import SampleWindows
from kstreams.metrics.sensors import ThreadSensors
from kstreams.os.forks import end_child_of, in_child
from kstreams.processor.context.current_task import in_task
from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.bounded_run import Phase
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.queries.store_queries import StoreQueries
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.tasks.restored_task import RestoredTask
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.active_task import ActiveTask, opened_task
from kstreams.runtime.native.thread.committer import (
    OUT_OF_GROUP,
    AtLeastOnce,
    CommitSchedule,
    Committer,
    ExactlyOnce,
    GroupCommits,
    Purge,
)
from kstreams.runtime.native.thread.input_reader import InputReader
from kstreams.runtime.native.thread.sink_buffer import SendRetry, SinkBuffer
from kstreams.runtime.native.time_alignment.reader_slices import ReaderSlices
from kstreams.runtime.native.time_alignment.writer_slices import WriterSlices

logger = logging.getLogger(__name__)


@dataclass
class _LastProgress:
    """The number of records that a task had processed, and when it last made progress."""

    records: int
    at_ms: int
    reported: bool = False


class StallDetector:
    """Reports tasks of one thread that make no progress, and writes summaries.

    Parameters
    ----------
    name : str
        The name of the thread.
    timeout_ms : int
        The time without progress after which a task is reported.
    summary_ms : int
        The interval of the summaries. 0 writes none.
    clock : Clock
    """

    def __init__(self, name: str, timeout_ms: int, summary_ms: int, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._summary_ms = summary_ms
        self._summarized_ms = clock.uptime_ms()
        self._summarized_records = 0
        self._last_progress: dict[str, _LastProgress] = {}
        self.stalls = 0

    def check(self, tasks: Sequence[ActiveTask]) -> None:
        """Compare the progress of the tasks with that of the last check."""
        now_ms = self._clock.uptime_ms()
        for task in tasks:
            self._check(task, now_ms)
        if 0 < self._summary_ms <= now_ms - self._summarized_ms:
            self._summarize(tasks, now_ms)

    def _check(self, task: ActiveTask, now_ms: int) -> None:
        last_progress = self._last_progress.setdefault(task.id, _LastProgress(task.processed, now_ms))
        sources = [source for source in task.plan.inputs if task.input.group.buffered(source)]
        if task.processed != last_progress.records or not sources:
            self._last_progress[task.id] = _LastProgress(task.processed, now_ms)
        elif now_ms - last_progress.at_ms >= self._timeout_ms and not last_progress.reported:
            last_progress.reported = True
            self.stalls += 1
            reason = ", ".join(map(str, task.input.group.empty_partitions())) or _reason_in_slices(task)
            logger.warning(
                "%s: task %s has made no progress for %d ms: it holds records of %s and waits for %s",
                self._name, task.id, now_ms - last_progress.at_ms, ", ".join(map(str, sources)), reason,
            )  # fmt: skip

    def _summarize(self, tasks: Sequence[ActiveTask], now_ms: int) -> None:
        records = sum(task.processed for task in tasks)
        new = records - self._summarized_records
        seconds = (now_ms - self._summarized_ms) / 1000
        logger.info("%s: %d tasks processed %d records in %.0f s", self._name, len(tasks), new, seconds)
        self._summarized_ms = now_ms
        self._summarized_records = records


def _reason_in_slices(task: ActiveTask) -> str:
    return "nothing" if task.input.has_more() else "tasks that read history and have not come as far in time"


_TURN_MS = 200  # the longest turn of a task while other tasks wait
# a scan of stores takes at most a fifth of a busy thread's time
_RESTS_PER_SCAN = 4
_LONGEST_REST_S = 0.1
_WAIT_S = 0.1  # the interval of checks for a stop, while the thread waits for tasks


class StreamThread:
    """Runs tasks with its own clients of the log. `run` is the loop. A test may call `open`, `round` and `close`.

    Parameters
    ----------
    name : str
    index : int
        From 1, unique within the process; part of the transactional id.
    context : RuntimeContext
    manager : TaskManager
        Assigns tasks to the thread, and revokes them.
    group : GroupCommits
    plans : sequence of TaskPlan
        In a bounded run, all tasks of the thread. The run begins when it has all of them.
    paused : Event, optional
        Set while the application is paused.
    leaving : callable
        Returns the context manager in which a task is removed from the thread.
    """

    def __init__(
        self,
        name: str,
        index: int,
        context: RuntimeContext,
        manager: TaskManager,
        group: GroupCommits,
        plans: Sequence[TaskPlan] = (),
        *,
        paused: threading.Event | None = None,
        leaving: Callable[[StreamThread, ActiveTask], AbstractContextManager[None]] = lambda *_: nullcontext(),
    ) -> None:
        self.name = name
        self.index = index
        self.plans = plans
        self.state = ThreadState.CREATED
        self.tasks: list[ActiveTask] = []
        self.store_queries = StoreQueries(self._wake)
        self.stopping = threading.Event()
        self._woken = threading.Event()
        self.sensors = ThreadSensors(SampleWindows.of(context.environment.config), context.environment.clock.wall_ms())
        self._manager = manager
        self._paused = paused or threading.Event()
        self._leaving = leaving
        self._changes: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._restored: dict[TaskId, RestoredTask] = {}
        self._restored_lock = threading.Lock()
        self._context = context
        settings = context.environment.settings
        self._consumer = context.environment.consumer("main")
        self._admin = context.environment.log.admin()
        self._producer = context.environment.producer(index)
        guarantee = (
            ExactlyOnce(self._producer, group)
            if context.environment.exactly_once
            else AtLeastOnce(self._producer, group)
        )
        internal = frozenset(context.topology.layout.topic_names.values())
        retry = SendRetry(settings.production_handler, settings.task_timeout_ms, context.environment.clock)
        readers = ReaderSlices(manager.alignment, self._consumer, self._admin, internal, settings.buffered_bytes // 2)
        self._writer_slices = WriterSlices(manager.alignment)
        self.sink_buffer = SinkBuffer(
            self._producer, guarantee.begin, self._partitions, retry, self._writer_slices, internal
        )
        self.committer = Committer(self._producer, self._admin, self.sink_buffer, guarantee, retry)
        self.stall_detector = StallDetector(
            name, settings.task_timeout_ms, settings.summary_interval_ms, context.environment.clock
        )
        self._schedule = CommitSchedule(
            settings, context.environment.clock, is_bounded=context.topology.bounds is not None
        )
        read_once = internal | context.connectors.streamed_topics
        self._purge = Purge(self._admin, read_once, settings.purge_interval_ms, context.environment.clock)
        self._input = InputReader(self._consumer, self._admin, context, readers)
        self.is_busy = True
        self.round_ms = context.environment.clock.uptime_ms()  # when the present round began
        self._ident: int | None = None
        # the counters of tasks that were released
        self.released_in = 0
        self.released_dropped = Counter[tuple[str, str]]()

    def run(self) -> None:
        """Run rounds until the thread is stopped or done, and close it. Raises the error that ends it."""
        self._ident = threading.get_ident()
        process = os.getpid()
        in_child(self, StreamThread._interrupt)
        try:
            self.state = ThreadState.STARTING
            if self.plans:
                self.open()
            while not self.stopping.is_set() and not self.done():
                if self._writer_slices.may_commit:
                    self.change_tasks()
                self._record_throttling()
                self.rest() if self._paused.is_set() or self._is_delayed() else self.round()
            self.state = ThreadState.PENDING_SHUTDOWN
            self._commit_at_stop()
        except OUT_OF_GROUP:
            self._producer.abandon()
            raise
        except Exception as error:
            end_child_of(process, self.name, error)
            self._send_dead_letters()
            raise
        finally:
            self.state = ThreadState.PENDING_SHUTDOWN
            self.close()

    def stop(self) -> None:
        """Stop between two records, and commit. May be called from any thread."""
        self.stopping.set()
        self._interrupt()
        self._wake()

    def _interrupt(self) -> None:
        """Let the tasks process no further record."""
        for task in list(self.tasks):
            task.interrupt()

    def _wake(self) -> None:
        """End a wait for records or in a pause. May be called from any thread."""
        self._woken.set()
        self._input.wake()

    def give(self, task: RestoredTask) -> None:
        """Run a task from the next round on. May be called from any thread."""
        with self._restored_lock:
            if self.state is not ThreadState.DEAD:
                self._restored[task.plan.id] = task
                self._change(partial(self._add, task.plan.id))
                return
        task.state.close()

    def release(self, task: TaskId) -> None:
        """Commit and close a task before the next round. May be called from any thread."""
        self._change(partial(self._release, task))

    def fail(self, error: BaseException) -> None:
        """End the thread with an error before the next round. May be called from any thread."""
        self._change(partial(_raise, error))

    def _change(self, change: Callable[[], None]) -> None:
        self._changes.put(change)
        self._wake()

    def open(self) -> None:
        """Wait for all tasks of the thread, and open them."""
        self.state = ThreadState.PARTITIONS_ASSIGNED
        while not self.stopping.is_set() and len(self.tasks) < (len(self.plans) or self._num_assigned()):
            self.change_tasks(_WAIT_S)
        self._schedule.restart()

    def change_tasks(self, timeout: float = 0.0) -> None:
        """Open assigned tasks and close revoked ones. Waits up to `timeout` seconds for the first change."""
        try:
            self._changes.get(timeout=timeout)() if timeout else self._changes.get_nowait()()
            while True:
                self._changes.get_nowait()()
        except Empty:
            pass
        is_complete = len(self.tasks) == self._num_assigned()
        self.state = ThreadState.RUNNING if is_complete else ThreadState.PARTITIONS_ASSIGNED

    def _num_assigned(self) -> int:
        """Return the number of tasks that are assigned to the thread."""
        return len(self._manager.share(self.index))

    def _add(self, task: TaskId) -> None:
        opened = opened_task(self._restored[task], self._context, self.sink_buffer, self.store_queries.were_recent)
        del self._restored[task]
        opened.state.committed.rest = self._delay_scan
        self.tasks.append(opened)
        self.tasks.sort(key=lambda task: task.plan.id)
        self._assign_inputs()
        self.sensors.tasks_created.record(1, monotonic())
        self._manager.running(task)

    def _assign_inputs(self) -> None:
        self._writer_slices.assign([task.input for task in self.tasks])
        self._input.assign(self.tasks)

    def _delay_scan(self, seconds: float) -> None:
        """Delay a scan of the thread's stores while the thread is busy, after a part that took `seconds`."""
        if self.is_busy:
            self.stopping.wait(min(_LONGEST_REST_S, seconds * _RESTS_PER_SCAN))

    def _release(self, task: TaskId) -> None:
        (active,) = (active for active in self.tasks if active.plan.id == task)
        if any(each.uncommitted for each in self.tasks):
            self.commit()
        with self._leaving(self, active):
            self.tasks.remove(active)
        self.released_in += active.task.records_in
        self.released_dropped += active.task.dropped
        self._assign_inputs()
        active.close()
        self._writer_slices.forget(task)
        self.sensors.tasks_closed.record(1, monotonic())
        self._manager.released(task)

    def round(self) -> None:
        """Poll, process each task for a while, and commit if it is time."""
        self.round_ms = self._context.environment.clock.uptime_ms()
        started_at = monotonic()
        polled = self._input.poll(is_busy=self.is_busy)
        self.sensors.poll.record(started_at, polled)
        self._writer_slices.begin_round(self._input.is_all_buffered)
        with self._context.topology.global_tables.reading():
            worked = [self._work(task) for task in self.tasks]
            self.store_queries.answer(self._complete)
        self.is_busy = polled > 0 or any(worked)
        if not self.is_busy:
            self._skip_gaps()
        self.sink_buffer.flush()
        if self._writer_slices.may_commit:
            self.sink_buffer.flush_merged()
        if self._writer_slices.may_commit and self._schedule.is_due(self.tasks):
            self.commit()
        self._finish_slices()
        if not self.is_busy:
            self._context.environment.log.do_housekeeping()
        if self._context.topology.bounds is not None and not self.is_busy and not self.stopping.is_set():
            self._check_end_of_input()
        self.stall_detector.check(self.tasks)

    def _finish_slices(self) -> None:
        """Report the tasks at the end of their slice, as soon as other threads see their output."""
        finished = self._writer_slices.finished(self._input.is_all_buffered)
        if not finished:
            return
        if not self._context.environment.exactly_once:
            self._producer.flush()
        elif any(task.uncommitted for task in self.tasks if task.plan.id in finished):
            self.commit()
        self._writer_slices.report(finished)

    def _is_delayed(self) -> bool:
        """Return whether the client id has sent more than its quota allows."""
        return self._producer.throttling().remaining_ms > 0

    def _record_throttling(self) -> None:
        self.sensors.produce_throttling.update(self._producer.throttling())
        self.sensors.fetch_throttling.update(self._consumer.throttling())

    def rest(self) -> None:
        """Do a round of a paused or delayed thread: answer queries and commit, but process no record."""
        self.round_ms = self._context.environment.clock.uptime_ms()
        with self._context.topology.global_tables.reading():
            self.store_queries.answer(self._complete)
        if self._writer_slices.may_commit and self._schedule.is_due(self.tasks):
            self.commit()
        delay_ms = self._producer.throttling().remaining_ms
        poll_s = self._context.environment.settings.poll_s
        self._woken.wait(min(poll_s, delay_ms / 1000) if delay_ms else poll_s)
        self._woken.clear()

    def place(self) -> tuple[ActiveTask, str] | None:
        """Return the task and the operator that the thread is in now. May be called from any thread."""
        frame = None if self._ident is None else sys._current_frames().get(self._ident)
        operators = ((task, task.task.operator_at(frame)) for task in list(self.tasks) if frame is not None)
        return next(((task, operator) for task, operator in operators if operator is not None), None)

    def commit(self) -> None:
        """Commit all tasks of the thread together."""
        started_ms = self._context.environment.clock.uptime_ms()
        started_at = monotonic()
        with self._context.topology.global_tables.reading():
            self._skip_gaps()
            worked = [task.id for task in self.tasks if task.uncommitted]
            self.committer.commit(self.tasks)
        self._context.state.rebuilds.committed(worked)
        self._schedule.committed(started_ms)
        self._purge.after_commit(self.tasks)
        self.sensors.commit.record(started_at)

    def done(self) -> bool:
        """Return whether the tasks of a bounded run are done."""
        bounds = self._context.topology.bounds
        return bounds is not None and all(bounds.phase(p.id.sub_topology) is Phase.DONE for p in self.plans)

    def close(self) -> None:
        """Close tasks and clients. Uncommitted changes are dropped."""
        with self._restored_lock:
            self.state = ThreadState.DEAD
        self.store_queries.close()
        for task in self.tasks:
            self._writer_slices.forget(task.plan.id)
        close_functions = [task.state.close for task in self._restored.values()]
        clients = [self._producer.close, self._consumer.close, self._admin.close]
        closers = [*(task.close for task in self.tasks), *close_functions, *clients]
        for close in closers:
            try:
                close()
            except Exception:
                logger.exception("%s: closing failed", self.name)

    def _send_dead_letters(self) -> None:
        """Write the record that ended the thread to the dead-letter topic.

        Under exactly once it is not written: the transaction is aborted.
        """
        topics = frozenset[str]().union(*(task.task.failures.written_topics for task in self.tasks))
        if topics and not self._context.environment.exactly_once:
            try:
                self.sink_buffer.flush_topics(topics)
            except LogError:
                logger.exception("%s: the dead letters could not be written", self.name)

    def _commit_at_stop(self) -> None:
        """Commit processed records, except of an unfinished slice under exactly once: they are processed again later.

        The output of an unfinished slice cannot be sorted. Under at least once, parts of it may be written already.
        """
        is_partial = not self._writer_slices.may_commit and self._context.environment.exactly_once
        if any(task.uncommitted for task in self.tasks) and not is_partial:
            self.commit()

    def _partitions(self, topic: str) -> int:
        return self._admin.describe_topic(topic).partitions

    def _work(self, task: ActiveTask) -> bool:
        """Let a task process its records for a while. Return whether it had some."""
        with in_task(task.id):
            worked = self._process(task)
            if not self.stopping.is_set():
                self._pass_time(task)
            task.task.send()  # at a stop too: the output of a slice is sorted as a whole
        return worked

    def _process(self, task: ActiveTask) -> bool:
        clock = self._context.environment.clock
        started_ms = clock.uptime_ms()
        worked = False
        while not self.stopping.is_set() and self._run_once(task):
            worked = True
            self.store_queries.answer(self._complete)
            is_full = self._schedule.is_memory_full(self.tasks)
            if task.task.commit_requested or is_full or clock.uptime_ms() - started_ms > _TURN_MS:
                break
        return worked

    def _pass_time(self, task: ActiveTask) -> None:
        started_at = monotonic()
        if task.punctuate():
            self.sensors.punctuate.record(started_at)
        if self._context.topology.bounds is None:
            task.pass_time()

    def _run_once(self, task: ActiveTask) -> bool:
        started_at = monotonic()
        if processed := task.run_once():
            self.sensors.process.record(started_at, processed)
        return processed > 0

    def _complete(self) -> None:
        """Apply all processed records to the stores."""
        for task in self.tasks:
            task.task.complete()

    def _check_end_of_input(self) -> None:
        """Report the ends of inputs in a bounded run. Tasks report committed offsets only."""
        bounds = self._context.topology.bounds
        if bounds is None:
            return
        for task in self.tasks:
            if bounds.phase(task.plan.id.sub_topology) is Phase.ENDING and not task.ended:
                task.end_input()
        self._skip_gaps()
        if any(task.uncommitted for task in self.tasks):
            self.commit()
        for task in self.tasks:
            bounds.report(task.plan.id, task.next_offsets, task.ended)
        bounds.advance()

    def _skip_gaps(self) -> None:
        """Skip offsets without records for tasks, such as the marker of a transaction at the end of an input."""
        for task in self.tasks:
            task.skip_gaps(self._input.read_up_to)


def _raise(error: BaseException) -> None:
    raise error
