"""`InputReader`: reads the inputs of one thread's tasks, within the limits of memory and of the run."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kstreams.errors import LogError, RegistryUnavailableError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, Consumer
from kstreams.processor.task.task import Task
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.tasks.restored_task import OffsetReset
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.time_alignment.reader_slices import ReaderSlices
from kstreams.schemas.retrying import RetryPolicy

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wait:
    """The start of a wait, the time of the next request to the registry, and the backoff after it."""

    since_ms: int
    until_ms: int
    backoff_ms: int


class SchemaWaits:
    """The inputs of one thread that wait for a schema of the registry. All other inputs are read on.

    Records before the one with the unknown schema are processed.

    Parameters
    ----------
    policy : RetryPolicy
    clock : Clock
    """

    def __init__(self, policy: RetryPolicy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock
        self._waits: dict[TopicPartition, _Wait] = {}

    def paused(self) -> set[TopicPartition]:
        """Return the inputs that are not read before the next request to the registry."""
        if not self._waits:
            return set()
        now_ms = self._clock.uptime_ms()
        return {source for source, wait in self._waits.items() if now_ms < wait.until_ms}

    def retain(self, sources: Collection[TopicPartition]) -> None:
        """Drop the waits of all other inputs, which the thread no longer reads."""
        self._waits = {source: wait for source, wait in self._waits.items() if source in sources}

    def readable(self, batch: Batch, task: Task) -> int:
        """Return how many rows of a batch, from the first one on, the task can decode now.

        Raises
        ------
        RegistryUnavailableError
            When the registry has not answered for the whole timeout.
        """
        missing_schema = task.missing_schema(batch)
        if missing_schema is None:
            self._waits.pop(batch.source, None)
            return len(batch)
        row, error = missing_schema
        if row:
            self._waits.pop(batch.source, None)  # a wait begins when the record is the next one
        self._wait(batch.source, error)
        return row

    def _wait(self, source: TopicPartition, error: RegistryUnavailableError) -> None:
        now_ms = self._clock.uptime_ms()
        policy = self._policy
        wait = self._waits.setdefault(source, _Wait(now_ms, now_ms, policy.first_wait_ms))
        remaining_ms = wait.since_ms + policy.timeout_ms - now_ms
        if remaining_ms <= 0:
            raise error
        logger.warning("%s waits for the schema registry, for %.0f s at most: %s", source, remaining_ms / 1000, error)
        wait.until_ms = now_ms + min(wait.backoff_ms, remaining_ms)
        wait.backoff_ms = min(2 * wait.backoff_ms, policy.longest_wait_ms)


_SHORT_POLL_S = 0.005  # the timeout of polls while other tasks are waited for


class InputReader:
    """The consumer of one thread, and the task that each partition belongs to.

    Parameters
    ----------
    consumer : Consumer
    admin : Admin
    context : RuntimeContext
    slices : ReaderSlices
        Gives the records to the tasks, in the order of time.
    """

    def __init__(self, consumer: Consumer, admin: Admin, context: RuntimeContext, slices: ReaderSlices) -> None:
        self._consumer = consumer
        self._admin = admin
        self._context = context
        self._bounds = context.topology.bounds
        self._slices = slices
        self._tasks: Sequence[ActiveTask] = ()
        self._task_of: dict[TopicPartition, ActiveTask] = {}
        self._internal = frozenset(context.topology.layout.topic_names.values())
        self._poll_s = context.environment.settings.poll_s if context.topology.bounds is None else _SHORT_POLL_S
        self._most_records = context.environment.settings.max_poll_records
        self._most_buffered_records = context.environment.settings.max_buffered_records
        self._most_buffered_bytes = context.environment.settings.buffered_bytes // 2  # the other half is for output
        self._is_memory_full = False
        self._schemas = SchemaWaits(RetryPolicy.of(context.environment.config), context.environment.clock)

    def assign(self, tasks: Sequence[ActiveTask]) -> None:
        """Read the inputs of these tasks. Those of new tasks are read from their next offsets."""
        before = self._task_of
        self._slices.assign([task.input for task in tasks])
        self._tasks = tuple(tasks)
        self._task_of = {source: task for task in tasks for source in task.plan.inputs}
        self._consumer.assign(list(self._task_of))
        for source, task in self._task_of.items():
            if before.get(source) is not task:
                self._consumer.seek(source, task.next_offsets[source])
        self._schemas.retain(self._task_of)

    def poll(self, *, is_busy: bool) -> int:
        """Buffer records, and set the lags of all inputs. Return a number above 0 if tasks have new records.

        Parameters
        ----------
        is_busy : bool
            True if the tasks have records to process. Then the poll does not wait for records.
        """
        self._pause_full()
        most = self._most_polled()
        batches = self._fetched(0.0 if is_busy else self._wait_s(), most)
        for batch in self._that_fit(batches):
            if len(rows := self._within_bounds(batch)):
                self._slices.add(rows)
        released = self._slices.release()
        for task in self._tasks:
            # An input of a bounded run that is read to its end may be drained before the next poll.
            empty_partitions = task.input.group.empty_partitions() if self._bounds is None else task.plan.inputs
            for source in empty_partitions:
                task.input.group.set_lag(source, 0 if self._is_at_end(source, task) else 1)
        return sum(map(len, batches)) + released

    def wake(self) -> None:
        """End the wait of `poll`. May be called from any thread."""
        self._consumer.wakeup()

    def is_full(self, source: TopicPartition) -> bool:
        """Return whether enough records of a partition are buffered, or any while the memory for input is full."""
        buffered = self._task_of[source].input.group.buffered(source)
        return buffered > self._most_buffered_records or (buffered > 0 and self._is_memory_full)

    def is_all_buffered(self, source: TopicPartition) -> bool:
        """Return whether all records of a partition are buffered: now, or in a bounded run for good."""
        return self._is_at_end(source, self._task_of[source]) and self._slices.is_settled(source)

    def read_up_to(self, source: TopicPartition) -> int:
        """Return the offset up to which a partition has been read."""
        end = self._end_of(source)
        position = self._consumer.position(source)
        first_waiting = self._slices.first_waiting(source)
        if first_waiting is not None:
            return first_waiting
        return position if end is None else min(position, end)

    def _wait_s(self) -> float:
        """Return the timeout of a poll for tasks without records. It is short while slices follow each other."""
        return _SHORT_POLL_S if self._slices.is_active else self._poll_s

    def _fetched(self, timeout: float, most: int) -> list[Batch]:
        try:
            return self._consumer.poll(timeout, most)
        except UnknownTopicError:
            raise
        except LogError:
            if not self._skip_deleted():
                raise
            return self._fetched(timeout, most)

    def _skip_deleted(self) -> bool:
        """Skip records that were deleted before they were read, by the offset reset. Return whether there were any."""
        begins = self._admin.beginning_offsets(list(self._task_of))
        deleted = {source: at for source in begins if (at := self._consumer.position(source)) < begins[source]}
        context = self._context
        with context.environment.consumer("restore") as consumer:
            reset = OffsetReset(
                self._admin,
                consumer,
                context.environment.default_reset,
                context.environment.clock,
                context.topology.layout.stateful,
            )
            for source, at in deleted.items():
                task = self._task_of[source]
                next_offset = reset.after_loss(task.plan, source, at, begins[source])
                self._consumer.seek(source, next_offset)
                task.count_deleted(source, at, next_offset)
        return bool(deleted)

    def _pause_full(self) -> None:
        """Pause partitions without room in memory, and resume all others."""
        task_bytes = sum([task.input.group.buffered_bytes() for task in self._tasks])
        self._is_memory_full = self._slices.num_bytes + task_bytes > self._most_buffered_bytes
        full = set(filter(self.is_full, self._task_of)) | self._schemas.paused()
        self._consumer.resume([source for source in self._task_of if source not in full])
        self._consumer.pause(full)

    def _most_polled(self) -> int:
        """Return the greatest number of records of a poll: `max.poll.records`, or fewer if records are large."""
        row_bytes = max([task.input.group.row_bytes() for task in self._tasks], default=1)
        return min(self._most_records, max(1, self._most_buffered_bytes // row_bytes))

    def _that_fit(self, batches: Sequence[Batch]) -> Iterator[Batch]:
        """Yield the rows for which there is memory, and whose schemas are known. Other rows are read again later.

        Records may be larger than those before them, so that a poll returns more than there is memory for.
        """
        room = self._most_buffered_bytes
        cut = set[TopicPartition]()
        for batch in batches:
            if batch.source in cut:
                continue
            size = batch.keys.nbytes + batch.values.nbytes
            fitting = len(batch) if size <= room else max(0, len(batch) * room // size)
            if room == self._most_buffered_bytes:
                fitting = max(1, fitting)
            fitting = min(fitting, self._schemas.readable(batch, self._task_of[batch.source].task))
            if fitting < len(batch):
                self._consumer.seek(batch.source, int(batch.offsets[fitting]))
                cut.add(batch.source)
            room -= size
            if fitting:
                yield batch.slice(0, fitting) if fitting < len(batch) else batch

    def _within_bounds(self, batch: Batch) -> Batch:
        end = self._end_of(batch.source)
        if end is None or batch.offsets[-1] < end:
            return batch
        return batch.slice(0, int(batch.offsets.searchsorted(end)))

    def _is_at_end(self, source: TopicPartition, task: ActiveTask) -> bool:
        """Return whether all records of an input were read: now, or in a bounded run for good."""
        if self._bounds is None:
            return self._consumer.is_at_end(source) and not self._slices.is_waiting(source)
        end = self._bounds.end_of(source, task.plan.id.sub_topology)
        return end is not None and self._consumer.position(source) >= end

    def _end_of(self, source: TopicPartition) -> int | None:
        if self._bounds is None or source.topic in self._internal:
            return None  # an internal topic holds only results of bounded inputs, and is read to its end
        return self._bounds.end_of(source, self._task_of[source].plan.id.sub_topology)
