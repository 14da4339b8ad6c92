"""`InputReader`: reads the inputs of one thread's tasks, up to the bounds of memory and of the run."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kstreams.errors import LogError, RegistryUnavailableError, UnknownTopicError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, Consumer
from kstreams.processor.task.task import Task
from kstreams.runtime.native.group.messages import Slice
from kstreams.runtime.native.runtime_context import RuntimeContext
from kstreams.runtime.native.tasks.alignment import Alignment
from kstreams.runtime.native.tasks.offset_reset import OffsetReset
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.row_tags import untagged
from kstreams.runtime.native.thread.slice_buffer import SliceBuffer
from kstreams.schemas.retrying import RetryPolicy, without_waiting

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wait:
    """When an input began to wait, when its registry is asked again, and the backoff after that."""

    since_ms: int
    until_ms: int
    backoff_ms: int


class SchemaWaits:
    """The waits of one thread. Records before the unknown schema are processed, and other inputs go on.

    Parameters
    ----------
    patience : Patience
    clock : Clock
    """

    def __init__(self, patience: RetryPolicy, clock: Clock) -> None:
        self._patience = patience
        self._clock = clock
        self._waits: dict[TopicPartition, _Wait] = {}

    def paused(self) -> set[TopicPartition]:
        """The inputs that are not to be read before their next retry."""
        if not self._waits:
            return set()
        now_ms = self._clock.uptime_ms()
        return {source for source, wait in self._waits.items() if now_ms < wait.until_ms}

    def retain(self, sources: Collection[TopicPartition]) -> None:
        """Drop the waits of all inputs but these: the thread does not read them any more."""
        self._waits = {source: wait for source, wait in self._waits.items() if source in sources}

    def readable(self, batch: Batch, task: Task) -> int:
        """Return how many rows of a batch, from the first one on, the task can decode now.

        Raises
        ------
        RegistryUnavailableError
            When the registry has not answered for the whole timeout.
        """
        with without_waiting():
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
        patience = self._patience
        wait = self._waits.setdefault(source, _Wait(now_ms, now_ms, patience.first_wait_ms))
        remaining_ms = wait.since_ms + patience.timeout_ms - now_ms
        if remaining_ms <= 0:
            raise error
        logger.warning("%s waits for the schema registry, for %.0f s at most: %s", source, remaining_ms / 1000, error)
        wait.until_ms = now_ms + min(wait.backoff_ms, remaining_ms)
        wait.backoff_ms = min(2 * wait.backoff_ms, patience.longest_wait_ms)


_SHORT_POLL_S = 0.005  # where it waits only for other tasks, and not for long


class InputReader:
    """The consumer of one thread, and the task that each partition belongs to.

    Parameters
    ----------
    consumer : Consumer
    admin : Admin
    context : RuntimeContext
    alignment : Alignment
        Says which rows of repartition topics may be processed.
    """

    def __init__(self, consumer: Consumer, admin: Admin, context: RuntimeContext, alignment: Alignment) -> None:
        self._consumer = consumer
        self._admin = admin
        self._context = context
        self._bounds = context.topology.bounds
        self._alignment = alignment
        self._held: dict[TopicPartition, SliceBuffer] = {}
        self._ends: dict[TopicPartition, tuple[int, int]] = {}  # where what was written before a slice ends
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
        """Read the inputs of these tasks: of new ones from their next offsets."""
        before = self._task_of
        self._tasks = tuple(tasks)
        self._task_of = {source: task for task in tasks for source in task.plan.inputs}
        self._consumer.assign(list(self._task_of))
        for source, task in self._task_of.items():
            if before.get(source) is not task:
                self._consumer.seek(source, task.next_offsets[source])
                self._ends.pop(source, None)
                if self._alignment.is_shared and source.topic in self._alignment.topics:
                    self._held[source] = SliceBuffer(task.positions.unfinished(source))
        self._held = {source: buffer for source, buffer in self._held.items() if source in self._task_of}
        self._schemas.retain(self._task_of)

    def poll(self, *, is_busy: bool) -> int:
        """Buffer records, and report to every task how much its inputs lag; how many came, or need not wait any more.

        Parameters
        ----------
        is_busy : bool
            Whether the tasks have work: then it does not wait for records.
        """
        self._pause_full()
        most = self._most_polled()
        wait_s = _SHORT_POLL_S if self._alignment.is_active() else self._poll_s
        batches = self._fetched(0.0 if is_busy else wait_s, most)
        for batch in self._that_fit(batches):
            if len(rows := self._within_bounds(batch)):
                self._add(rows)
        released = [self._release(source, buffer) for source, buffer in self._held.items() if not buffer.is_empty]
        for task in self._tasks:
            # What a bounded run has read to its end may run out before the next poll: no task waits for it then.
            empty_partitions = task.group.empty_partitions() if self._bounds is None else task.plan.inputs
            for source in empty_partitions:
                task.group.set_lag(source, 0 if self._is_at_end(source, task) else 1)
        return sum(map(len, batches)) + sum(released)

    def wake(self) -> None:
        """Let the `poll` that waits return; from any thread."""
        self._consumer.wakeup()

    def is_full(self, source: TopicPartition) -> bool:
        """Whether enough is buffered of a partition, or some of it where the memory for input is full."""
        buffered = self._task_of[source].group.buffered(source)
        return buffered > self._most_buffered_records or (buffered > 0 and self._is_memory_full)

    def is_all_buffered(self, source: TopicPartition) -> bool:
        """Whether a partition holds no more than what was read of it: now, or in a bounded run ever."""
        return self._is_at_end(source, self._task_of[source]) and self._is_settled(source)

    def read_up_to(self, source: TopicPartition) -> int:
        """The offset up to which a partition has been read."""
        end = self._end_of(source)
        position = self._consumer.position(source)
        if source in self._held and not self._held[source].is_empty:
            return self._held[source].first_offset
        return position if end is None else min(position, end)

    def _add(self, rows: Batch) -> None:
        """Buffer rows; those of a repartition topic may have to wait for others."""
        if not self._alignment.is_shared and rows.headers is not None and rows.source.topic in self._internal:
            rows = untagged(rows).placed()
        buffer = self._held.get(rows.source)
        latest = Slice() if buffer is None else self._alignment.slice_of(self._alignment.topics[rows.source.topic])
        if buffer is None or (buffer.is_empty and latest.is_open_ended and rows.headers is None):
            return self._task_of[rows.source].add(rows)
        buffer.add(rows, latest)

    def _release(self, source: TopicPartition, buffer: SliceBuffer) -> int:
        """Buffer what need not wait any more; how many batches that is."""
        latest = self._alignment.slice_of(self._alignment.topics[source.topic])
        ordered_rows = buffer.take(
            latest, is_read=buffer.last_slice >= latest.number or self._is_read(source, latest.number)
        )
        if not ordered_rows and buffer.num_bytes > self._most_buffered_bytes:
            logger.warning("%s: there is no room to wait for the order of its rows", source)
            ordered_rows = buffer.take_all()
        for rows, region in ordered_rows:
            self._task_of[source].add(rows, region)
        return len(ordered_rows)

    def _is_read(self, source: TopicPartition, number: int) -> bool:
        """Whether all is read that was written before a slice began.

        Kafka shows the rows of a transaction some time after it has confirmed the commit: so it counts what is written.
        """
        if self._ends.get(source, (-1, 0))[0] < number:
            self._ends[source] = number, self._admin.end_offsets([source], committed_only=False)[source]
        return self._consumer.position(source) >= self._ends[source][1]

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
        """Skip records that were deleted before they were read, as the offset reset says; whether there were any."""
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
        """Read on only from partitions that have room."""
        buffered_bytes = sum([buffered_bytes.num_bytes for buffered_bytes in self._held.values()])
        group_bytes = sum([task.group.buffered_bytes() for task in self._tasks])
        self._is_memory_full = buffered_bytes + group_bytes > self._most_buffered_bytes
        full = set(filter(self.is_full, self._task_of)) | self._schemas.paused()
        self._consumer.resume([source for source in self._task_of if source not in full])
        self._consumer.pause(full)

    def _most_polled(self) -> int:
        """How many records a poll may give: as many as are allowed, fewer where they are large."""
        row_bytes = max([task.group.row_bytes() for task in self._tasks], default=1)
        return min(self._most_records, max(1, self._most_buffered_bytes // row_bytes))

    def _that_fit(self, batches: Sequence[Batch]) -> Iterator[Batch]:
        """What there is memory for, when records are larger than those before them, and whose schemas are known.

        The rest is read again.
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
        """Whether an empty input has no more to come: now, or in a bounded run ever."""
        if self._bounds is None:
            return self._consumer.is_at_end(source) and not self._is_awaited(source)
        end = self._bounds.end_of(source, task.plan.id.sub_topology)
        return end is not None and self._consumer.position(source) >= end

    def _is_awaited(self, source: TopicPartition) -> bool:
        """Whether writers of a repartition topic read history, or some of its rows have to wait."""
        buffer = self._held.get(source)
        if buffer is None:
            return False
        return not buffer.is_empty or not self._alignment.slice_of(self._alignment.topics[source.topic]).is_open_ended

    def _is_settled(self, source: TopicPartition) -> bool:
        """Whether its writers have no history to read, and what they have written of it is read."""
        sub = self._alignment.topics.get(source.topic)
        if sub is None or not self._alignment.is_shared:
            return True
        return sub in self._alignment.settled and self._is_read(source, self._alignment.slice_of(sub).number)

    def _end_of(self, source: TopicPartition) -> int | None:
        if self._bounds is None or source.topic in self._internal:
            return None  # internal topics hold nothing but what follows from the input: all of it is read
        return self._bounds.end_of(source, self._task_of[source].plan.id.sub_topology)
