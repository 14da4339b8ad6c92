"""`StreamThread`: runs its share of the tasks: poll, process, punctuate, commit, and again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import LogError, UnknownTopicError
from kstreams.log.api import Admin
from kstreams.processor.topology.layout import TaskPlan
from kstreams.runtime.native.bounded_run import Phase
from kstreams.runtime.native.job import Job
from kstreams.runtime.native.lifecycle import ThreadState
from kstreams.runtime.native.queries.store_queries import StoreQueries
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.committer import Committer
from kstreams.runtime.native.thread.offset_reset import OffsetReset
from kstreams.runtime.native.thread.open_tasks import open_tasks
from kstreams.runtime.native.thread.processing_guarantee import AtLeastOnce, ExactlyOnce
from kstreams.runtime.native.thread.purge import Purge
from kstreams.runtime.native.thread.send_retry import SendRetry
from kstreams.runtime.native.thread.sink_buffer import SinkBuffer
from kstreams.runtime.native.thread.stall_detector import StallDetector
from kstreams.runtime.native.thread.time_slices import TimeSlices

logger = logging.getLogger(__name__)

_TURN_MS = 200  # a task that still has records after this long lets the others go on
_LONGEST_REST_MS = 10_000
_BOUNDED_POLL_S = 0.005  # a bounded run waits only for its own threads, and not for long


class StreamThread:
    """One thread's tasks and its clients of the log. The loop is `run`; a test may call `open`, `round` and `close`.

    Parameters
    ----------
    name : str
    index : int
        From 1, unique within the application; part of the transactional id.
    plans : sequence of TaskPlan
    job : Job
        What all threads share.
    """

    def __init__(self, name: str, index: int, plans: Sequence[TaskPlan], job: Job) -> None:
        self.name, self.index, self.plans = name, index, plans
        self.state = ThreadState.CREATED
        self.tasks: list[ActiveTask] = []
        self.store_queries = StoreQueries()
        self.stopping = threading.Event()
        self._job = job
        self._consumer, self._admin = job.consumer("main"), job.log.admin()
        self._producer = job.producer(index)
        group = job.config.application_id
        guarantee = ExactlyOnce(self._producer, group) if job.exactly_once else AtLeastOnce(self._admin, group)
        internal = frozenset(job.layout.topic_names.values())
        merged = [job.layout.topic_names[name] for name in _written(plans, job)]
        retry = SendRetry(job.config, job.clock)
        count = partial(_partitions, self._admin)
        self.sink_buffer = SinkBuffer(self._producer, guarantee.begin, count, retry, merged, internal)
        self.committer = Committer(group, self._producer, self.sink_buffer, guarantee, retry)
        self.stall_detector = StallDetector(name, job.config, job.clock)
        self._purge = Purge(self._admin, internal, job.config, job.clock)
        self._slices: list[TimeSlices] = []
        self._task_of: dict[TopicPartition, ActiveTask] = {}
        self._commit_interval_ms: int = job.config["commit.interval.ms"]
        self._most_pending = job.per_thread(job.memory.uncommitted)
        self._most_buffered = job.per_thread(job.memory.buffered) // 2  # the other half is for output
        self._committed_ms = self._commit_took_ms = 0
        self._has_much = False  # whether as much input is buffered as memory allows
        self.is_busy = True

    def run(self, running: Callable[[], None]) -> None:
        """Open the tasks, say so by `running`, work until stopped or done, and close. Raises what went wrong."""
        try:
            self.state = ThreadState.STARTING
            self.open()
            self.state = ThreadState.RUNNING
            running()
            while not self.stopping.is_set() and not self.done():
                self.round()
            self.state = ThreadState.PENDING_SHUTDOWN
            if any(task.uncommitted for task in self.tasks):
                self.commit()
        except Exception:
            self._leave_dead_letters()
            raise
        finally:
            self.state = ThreadState.PENDING_SHUTDOWN
            self.close()
            self.state = ThreadState.DEAD

    def stop(self) -> None:
        """Stop soon, between two records, and commit; may be called from any thread."""
        self.stopping.set()
        for task in list(self.tasks):
            task.interrupt()

    def open(self) -> None:
        """Open the tasks and restore their stores."""
        self.state = ThreadState.PARTITIONS_ASSIGNED
        consumer = self._job.consumer("restore")
        with consumer:
            for task in open_tasks(self.plans, self._job, self.sink_buffer, consumer, self._admin, self.stopping):
                self.tasks.append(task)
                self._task_of |= dict.fromkeys(task.plan.inputs, task)
        self._slices = [self._slices_of(sub) for sub in {p.id.sub_topology for p in self.plans} & self._job.aligned]
        self._consumer.assign(list(self._task_of))
        for source, task in self._task_of.items():
            self._consumer.seek(source, task.next_offsets[source])
        self._committed_ms = self._job.clock.now_ms()

    def round(self) -> None:
        """One turn of the loop."""
        self._job.shutdown.check()
        polled = self._poll()
        for slices in self._slices:
            slices.advance(self._is_all_buffered)
        with self._job.global_tables.reading():
            worked = [self._work(task) for task in self.tasks]
        self.is_busy = polled or any(worked)
        self.store_queries.answer(self._settle)
        self.sink_buffer.flush()
        if not any(slices.is_open for slices in self._slices):
            self.sink_buffer.flush_merged()
        if self._commit_is_due():
            self.commit()
        if not self.is_busy:
            self._job.log.tend()
        if self._job.bounds is not None and not self.is_busy and not self.stopping.is_set():
            self._look_for_the_end()
        self.stall_detector.look(self.tasks)

    def commit(self) -> None:
        """Commit all tasks of the thread together."""
        started_ms = self._job.clock.now_ms()
        with self._job.global_tables.reading():
            for task in self.tasks:
                task.settle(self._read_up_to)
            worked = [task.plan for task in self.tasks if task.uncommitted]
            self.committer.commit(self.tasks)
        self._job.rebuilds.committed(worked)
        self._committed_ms = self._job.clock.now_ms()
        self._commit_took_ms = self._committed_ms - started_ms
        self._purge.after_commit(self.tasks)

    def done(self) -> bool:
        """Whether a bounded run has nothing more to do here."""
        bounds = self._job.bounds
        return bounds is not None and all(bounds.phase(p.id.sub_topology) is Phase.DONE for p in self.plans)

    def close(self) -> None:
        """Release everything; what is not committed is dropped."""
        self.store_queries.close()
        closers = [*(task.close for task in self.tasks), self._producer.close, self._consumer.close, self._admin.close]
        for close in closers:
            try:
                close()
            except Exception:
                logger.exception("%s: closing failed", self.name)

    def _leave_dead_letters(self) -> None:
        """What ended the thread is told in the dead-letter topic, where no transaction takes it back."""
        topics = frozenset[str]().union(*(task.task.failures.written_topics for task in self.tasks))
        if topics and not self._job.exactly_once:
            try:
                self.sink_buffer.flush_topics(topics)
            except LogError:
                logger.exception("%s: the dead letters could not be written", self.name)

    def _poll(self) -> bool:
        """Buffer records; tell every task how much its empty inputs lag."""
        self._hold_back()
        most = self._most_polled()
        idle_s = self._job.config["poll.ms"] / 1000 if self._job.bounds is None else _BOUNDED_POLL_S
        batches = self._fetched(0.0 if self.is_busy else idle_s, most)
        for batch in batches:
            if len(rows := self._within_bounds(batch)):
                self._task_of[batch.source].add(rows)
        everything = sum(map(len, batches)) < most
        for task in self.tasks:
            for source in task.group.empty_partitions():
                task.group.set_lag(source, 0 if self._is_drained(source, task, everything) else 1)
        return bool(batches)

    def _fetched(self, timeout: float, most: int) -> list[Batch]:
        try:
            return self._consumer.poll(timeout, most)
        except UnknownTopicError:
            raise
        except LogError:
            if not self._pass_deleted():
                raise
            return self._fetched(timeout, most)

    def _pass_deleted(self) -> bool:
        """Read on behind records that were deleted before they were read, as sources say; whether there were any."""
        begins = self._admin.beginning_offsets(list(self._task_of))
        behind = {source: at for source in begins if (at := self._consumer.position(source)) < begins[source]}
        with self._job.consumer("restore") as consumer:
            positions = OffsetReset(self._admin, consumer, self._job.config, self._job.clock, self._job.layout.stateful)
            for source, at in behind.items():
                task = self._task_of[source]
                goes_on = positions.after_loss(task.plan, source, at, begins[source])
                self._consumer.seek(source, goes_on)
                task.lose(source, at, goes_on)
        return bool(behind)

    def _hold_back(self) -> None:
        """Read on only from partitions that have room and are not at their end."""
        self._has_much = sum([task.group.buffered_bytes() for task in self.tasks]) > self._most_buffered
        full = set(filter(self._is_full, self._task_of))
        self._consumer.resume([source for source in self._task_of if source not in full])
        self._consumer.pause(full)

    def _is_full(self, source: TopicPartition) -> bool:
        """Whether enough is buffered of a partition, or some of it where the memory for input is full."""
        waiting = self._task_of[source].group.buffered(source)
        limit: int = self._job.config["buffered.records.per.partition"]
        return waiting > limit or (waiting > 0 and self._has_much)

    def _most_polled(self) -> int:
        """How many records a poll may give: as many as are allowed, fewer where they are large."""
        most: int = self._job.config["max.poll.records"]
        row_bytes = max([task.group.row_bytes() for task in self.tasks], default=1)
        return min(most, max(1, self._most_buffered // row_bytes))

    def _within_bounds(self, batch: Batch) -> Batch:
        end = self._end_of(batch.source)
        if end is None or batch.offsets[-1] < end:
            return batch
        return batch.slice(0, int(batch.offsets.searchsorted(end)))

    def _is_drained(self, source: TopicPartition, task: ActiveTask, everything: bool) -> bool:
        """Whether an empty input has no more to come: now, or in a bounded run ever."""
        bounds = self._job.bounds
        if bounds is None:
            return everything
        end = bounds.end_of(source, task.plan.id.sub_topology)
        return end is not None and self._consumer.position(source) >= end

    def _is_all_buffered(self, source: TopicPartition) -> bool:
        return self._is_drained(source, self._task_of[source], False)

    def _slices_of(self, sub_topology: int) -> TimeSlices:
        tasks = [task for task in self.tasks if task.plan.id.sub_topology == sub_topology]
        return TimeSlices(tasks, self._is_full)

    def _end_of(self, source: TopicPartition) -> int | None:
        bounds = self._job.bounds
        if bounds is None or source.topic in self._job.layout.topic_names.values():
            return None  # internal topics hold nothing but what follows from the input: all of it is read
        return bounds.end_of(source, self._task_of[source].plan.id.sub_topology)

    def _read_up_to(self, source: TopicPartition) -> int:
        end, position = self._end_of(source), self._consumer.position(source)
        return position if end is None else min(position, end)

    def _work(self, task: ActiveTask) -> bool:
        """Let one task process what it has, for a while."""
        clock = self._job.clock
        started_ms, worked = clock.now_ms(), False
        while not self.stopping.is_set() and task.run_once():
            worked = True
            if task.task.commit_requested or self._commit_early() or clock.now_ms() - started_ms > _TURN_MS:
                break
        if self.stopping.is_set():
            return worked
        task.punctuate()
        if self._job.bounds is None:
            task.pass_time()
        task.task.send()
        return worked

    def _settle(self) -> None:
        with self._job.global_tables.reading():
            for task in self.tasks:
                task.task.complete()

    def _commit_early(self) -> bool:
        return sum(task.bytes_pending for task in self.tasks) > self._most_pending

    def _commit_is_due(self) -> bool:
        if any(task.task.commit_requested for task in self.tasks):
            return True
        if any(slices.is_open for slices in self._slices):
            return False  # what was written of a slice cannot be put in order before it is complete
        if self._commit_early():
            return True
        # In a bounded run nobody waits for single results: there commits may take a twentieth of the time, no more.
        rest_ms = self._commit_took_ms * 20 if self._job.bounds is not None else 0
        elapsed_ms = self._job.clock.now_ms() - self._committed_ms
        return elapsed_ms >= max(self._commit_interval_ms, min(rest_ms, _LONGEST_REST_MS)) and any(
            task.uncommitted for task in self.tasks
        )

    def _look_for_the_end(self) -> None:
        """Nothing to do now: is it for ever? What is reported must be committed before."""
        bounds = self._job.bounds
        assert bounds is not None
        for task in self.tasks:
            if bounds.phase(task.plan.id.sub_topology) is Phase.ENDING and not task.ended:
                task.end_input()
            task.settle(self._read_up_to)
        if any(task.uncommitted for task in self.tasks):
            self.commit()
        for task in self.tasks:
            bounds.report(task.plan.id, task.next_offsets, task.ended)
        bounds.advance()


def _written(plans: Sequence[TaskPlan], job: Job) -> set[str]:
    """The repartition topics that these tasks write together, by their names in the topology."""
    subs = {plan.id.sub_topology: plan.sub_topology for plan in plans if plan.id.sub_topology in job.aligned}
    topics = {sink.topic for sub in subs.values() for sink in sub.sinks if isinstance(sink.topic, str)}
    return topics & job.layout.topic_names.keys()


def _partitions(admin: Admin, topic: str) -> int:
    return admin.describe_topic(topic).partitions
