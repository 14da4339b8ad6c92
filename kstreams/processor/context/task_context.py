"""`TaskContext`: what the closures of a task share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kstreams.clock import Clock
from kstreams.config import Config, MemoryShares
from kstreams.errors import StateError
from kstreams.private import private_folder
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.api.metrics import Sensor
from kstreams.processor.api.punctuation import Cancellable, Punctuations
from kstreams.processor.context.drops import Drops
from kstreams.processor.context.failures import Failures
from kstreams.processor.context.record_cursor import Origin, RecordCursor
from kstreams.record import Headers

if TYPE_CHECKING:
    from kstreams.processor.context.held_back import HeldBack

T = TypeVar("T")

_PART = 1_000  # rows after which it is worth a look how much was written


class TaskContext:
    """What belongs to a whole task and to the input record it is processing.

    An operator that emits something it kept sets `headers` to those of what it kept. `run` is None, and so is the
    topic, outside of any record: in punctuators and at flushes. The task sets `failures`.
    """

    failures: Failures
    drops: Drops

    __slots__ = (
        "_stream_time",
        "application_id",
        "caching",
        "clock",
        "commit_requested",
        "config",
        "deadlines",
        "delayed",
        "drops",
        "failures",
        "follows_time",
        "global_stores",
        "headers",
        "is_new",
        "partition",
        "run",
        "schedules",
        "send_if_many",
        "sensors",
        "shared",
        "state_dir",
        "stores",
        "stream_time_punctuations",
        "task_id",
        "uncommitted",
        "wall_clock_punctuations",
    )

    def __init__(
        self,
        *,
        application_id: str,
        task_id: str,
        partition: int,
        config: Config,
        clock: Clock,
        stores: Mapping[str, Any],
        global_stores: Mapping[str, Any],
        stream_time: int,
        state_dir: Path | None = None,
    ) -> None:
        self.application_id, self.task_id, self.partition = application_id, task_id, partition
        self.config, self.clock = config, clock
        self.stores, self.global_stores, self.state_dir = stores, global_stores, state_dir
        self.sensors: dict[tuple[str, str], Sensor] = {}  # of processors, by node and name
        self.shared: dict[str, Any] = {}
        self.caching = config.caches
        self.run: RecordCursor | None = None
        self.headers: Headers = ()
        self._stream_time = stream_time
        self.follows_time = False  # whether a processor may schedule punctuators of stream time
        self.commit_requested = False
        self.uncommitted: list[Callable[[], int]] = []  # the bytes that steps hold until the next commit
        self.send_if_many: Callable[[], None] = lambda: None  # sends what was written, once that is worth it
        self.delayed: dict[str, HeldBack[Any]] = {}  # what steps hold back, by node, children before parents
        self.stream_time_punctuations = Punctuations()
        self.wall_clock_punctuations = Punctuations()
        self.is_new = True  # until the task is bound
        self.schedules: dict[str, Cancellable] = {}  # those made until then
        self.deadlines: Mapping[str, int] = {}  # of the schedules of the task before this one

    @property
    def topic(self) -> str | None:
        """The topic of the input record; None outside of any record."""
        return None if self.run is None else self.run.topic

    @property
    def offset(self) -> int:
        """The offset of the input record, -1 outside of any record."""
        return -1 if self.run is None else int(self.run.offsets[self.run.row])

    @property
    def stream_time(self) -> int:
        """The highest timestamp (ms) processed so far, with the current record; -1 at first."""
        return self._stream_time if self.run is None else int(self.run.stream_times[self.run.row])

    def pass_time(self, elapsed_ms: int) -> bool:
        """All input is idle: stream time moves on; whether punctuators were called."""
        if self._stream_time < 0:
            return False
        self._stream_time += elapsed_ms
        return self.stream_time_punctuations.fire(self._stream_time)

    def uncommitted_share(self) -> int:
        """How many bytes the tasks of a thread may hold until they commit."""
        return MemoryShares.of(self.config).uncommitted // int(self.config["num.stream.threads"])

    def in_parts(self, rows: Iterable[T]) -> Iterator[T]:
        """Rows that one record lets go, or a flush: there may be very many, so what follows is sent as it gathers."""
        for number, row in enumerate(rows, 1):
            yield row
            if not number % _PART:
                self.send_if_many()

    def stop_at(self, runs: Iterable[RecordCursor]) -> None:
        """The loop over some runs was interrupted: stream time is what it came to, and there is no record any more."""
        reached = [int(run.stream_times[run.row]) for run in runs if run.taken]
        self._stream_time = max(self._stream_time, *reached, -1)
        self.run = None

    def leave(self) -> None:
        """No record is being processed any more."""
        self._stream_time = max(self._stream_time, self.stream_time)  # one that was held back stands before others
        self.run, self.headers = None, ()

    def place(self) -> str:
        """Where the input record came from, as errors and log lines say it."""
        return "(none: outside of any record)" if self.run is None else f"{self.topic}-{self.partition}@{self.offset}"

    def state_folder(self) -> Path:
        """The task's folder on the local disk, made when somebody asks for it."""
        if self.state_dir is None:
            raise StateError(f"Task {self.task_id} keeps nothing on disk, so that it has no folder for processors.")
        private_folder(self.state_dir)
        return self.state_dir

    def origin(self) -> Origin:
        """The current record, to be found again when the loop has gone on."""
        run = self.run
        return run, 0 if run is None else length_hint(run.cursor), self.headers

    def failure(self, node: str, timestamp: int | None = None) -> ErrorHandlerContext:
        """What there is to say of the current record when an operator fails on it, or drops it."""
        return self.failure_of(self.origin(), node, timestamp)

    def failure_of(self, origin: Origin, node: str, timestamp: int | None = None) -> ErrorHandlerContext:
        """The same of a record that was the current one."""
        run, left, headers = origin
        if run is None:
            found = ErrorHandlerContext(timestamp=self.stream_time, processor_node_id=node, task_id=self.task_id)
        else:
            row = int(run.batch.offsets.searchsorted(run.offsets[len(run.offsets) - 1 - left]))
            found = ErrorHandlerContext.of_row(run.batch, row, node, self.task_id)
        return replace(found, headers=headers, timestamp=found.timestamp if timestamp is None else timestamp)

    def drop(self, node: str, reason: str, count: int = 1) -> None:
        """Count records that a node skips, the current one last; tell the log, and whoever wants dead letters."""
        if self.failures.keeps_dropped:
            self.failures.dropped(self.failure(node), reason, count)
        else:
            self.drops.add(node, reason, self.place, count)
