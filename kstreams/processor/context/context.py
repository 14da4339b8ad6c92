"""`TaskContext` and `NodeContext`: what the closures of a task share, and what one of them is given to bind itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import length_hint
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from kstreams.batch import Batch
from kstreams.clock import Clock
from kstreams.config import Config, MemoryShares
from kstreams.errors import StateError, TopologyError
from kstreams.private import private_folder
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.api.metrics import Sensor
from kstreams.processor.api.punctuation import Cancellable, Punctuations, PunctuationType
from kstreams.processor.context.chain import Link, OnError, StatementOperator, compiled, passing_on
from kstreams.processor.context.checked_store import checked
from kstreams.processor.context.drops import Drops
from kstreams.processor.context.failures import Failures
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers, Record

if TYPE_CHECKING:
    from kstreams.processor.context.held_back import Delayed

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")
T = TypeVar("T")

_PART = 1_000  # rows after which it is worth a look how much was written


class RecordContext(NamedTuple):
    """The input record that is being processed, for functions that choose a topic or a partition."""

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers


class Run:
    """A batch that is being processed, record by record, and how far the loop over it has come.

    Offset and stream time are looked up when somebody asks: so they cost nothing for each record.

    Parameters
    ----------
    batch : Batch
        What was read; the records of the run are some of it, or all.
    offsets, stream_times : numpy int64 array, shape (n,)
        Of each record: its offset, and the highest timestamp up to and with it.
    timestamps : list of int, length n
        Event time of each record in milliseconds; the loop takes them from `cursor`.
    """

    __slots__ = ("batch", "cursor", "offsets", "stream_times")

    def __init__(
        self,
        batch: Batch,
        offsets: np.ndarray[Any, np.dtype[np.int64]],
        stream_times: np.ndarray[Any, np.dtype[np.int64]],
        timestamps: list[int],
    ) -> None:
        self.batch, self.offsets, self.stream_times = batch, offsets, stream_times
        self.cursor = iter(timestamps)

    @property
    def topic(self) -> str:
        """Where its records came from."""
        return self.batch.source.topic

    @property
    def row(self) -> int:
        """Which record was taken last, from 0."""
        return len(self.offsets) - 1 - length_hint(self.cursor)

    @property
    def taken(self) -> int:
        """How many records were taken."""
        return self.row + 1

    def here(self) -> Run:
        """A run that stands at this record, for what goes on with it when the loop is elsewhere."""
        row = self.row
        return Run(self.batch, self.offsets[row : row + 1], self.stream_times[row : row + 1], [])


Origin: TypeAlias = tuple[Run | None, int, Headers]
"""An input record, to be found again: its run, how much of that was left, and the headers that its output had come to.
One is made for every row that is written where a handler may ask for it: so it is a plain tuple, and read later."""


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
        self.run: Run | None = None
        self.headers: Headers = ()
        self._stream_time = stream_time
        self.follows_time = False  # whether a processor may schedule punctuators of stream time
        self.commit_requested = False
        self.uncommitted: list[Callable[[], int]] = []  # the bytes that steps hold until the next commit
        self.send_if_many: Callable[[], None] = lambda: None  # sends what was written, once that is worth it
        self.delayed: dict[str, Delayed[Any]] = {}  # what steps hold back, by node, children before parents
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

    def stop_at(self, runs: Iterable[Run]) -> None:
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


class NodeContext:
    """What one operator gets when a task binds it.

    Parameters
    ----------
    node : str
        Its name.
    task : TaskContext
        Shared by all closures of the task.
    children : mapping of str to Forward
        The closures of its children by name, in order of declaration.
    callbacks : Callbacks
        Where it registers what is to be called at flushes and at the end of input.
    connected : tuple of str
        The stores that it was connected to.
    """

    __slots__ = ("_callbacks", "children", "connected", "live", "node", "task")

    def __init__(
        self,
        node: str,
        task: TaskContext,
        children: Mapping[str, Forward],
        callbacks: Callbacks,
        connected: tuple[str, ...] = (),
    ) -> None:
        self.node, self.task, self.children, self._callbacks = node, task, children, callbacks
        self.connected = connected
        self.live: Any = None  # what the columnar form of this operator, if it has one, shares with its closure

    @property
    def caching(self) -> bool:
        """Whether the record cache is on (`statestore.cache.max.bytes` above 0)."""
        return self.task.caching

    def state_store(self, name: str) -> Any:
        """The live store of this name: one of the task's, or a global one."""
        found = self.task.stores.get(name)
        if found is None:
            found = self.task.global_stores.get(name)
        if found is None:
            known = ", ".join(sorted([*self.task.stores, *self.task.global_stores])) or "none"
            raise TopologyError(
                f"{self.node} asks for the state store {name!r}, which task {self.task.task_id} does not have "
                f"(it has: {known}). Connect the store to the operator."
            )
        return checked(found) if self.task.failures.guards_processing else found

    def shared(self, name: str, make: Callable[[], S]) -> S:
        """An object that operators of one task share, made by the first that asks for it."""
        if name not in self.task.shared:
            self.task.shared[name] = make()
        found: S = self.task.shared[name]
        return found

    def bound(self, operator: Any, forward: Forward) -> Forward:
        """The closure of an operator under this node's name, of which handlers are told what goes wrong in it."""
        if isinstance(operator, StatementOperator):
            statements = operator.statement(), passing_on(forward)
            return self._callbacks.chained([Link(self.node, statement) for statement in statements])
        closure: Forward = self.named(operator.bind(self, forward))
        failures = self.task.failures
        return failures.guarded(self.node, closure, self.task.failure) if failures.guards_processing else closure

    def at_flush(self, callback: Callable[[], None]) -> None:
        """Call `callback` at every flush, parents before children."""
        self._callbacks.at_flush.append((self.node, self.named(callback)))

    def at_end_of_input(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when bounded input has ended, parents before children."""
        self._callbacks.at_end_of_input.append((self.node, self.named(callback)))

    def at_idle(self, callback: Callable[[int], bool]) -> None:
        """Call `callback(elapsed_ms)` as time passes on idle input, parents before children.

        The callback moves its stream time on, if it has seen a record, and says whether anything may have come out.
        """
        self._callbacks.at_idle.append((self.node, self.named(callback)))

    def at_close(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the task closes."""
        self._callbacks.at_close.append((self.node, self.named(callback)))

    def remember(self, name: str, read: Callable[[], int]) -> int:
        """Keep a number with every commit, such as a stream time; returns what was kept last, -1 at first.

        Parameters
        ----------
        name : str
            Unique within the operator.
        read : callable
            Gives the number to keep.
        """
        key = f"{self.node}:{name}"
        self._callbacks.remembered[key] = read
        return self._callbacks.memo.get(key, -1)

    def named(self, function: F) -> F:
        """The same function under a code object that bears this operator's name.

        A traceback then tells which operator failed, at no cost per record, and the interpreter specialises each
        closure for what it calls. Anything but a plain Python function is returned as it is.
        """
        if not isinstance(function, FunctionType):
            return function
        code = function.__code__.replace(co_name=self.node)
        self._callbacks.codes[code] = self.node
        copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        copy.__kwdefaults__ = function.__kwdefaults__
        return cast("F", copy)

    def _guarded(self, callback: Callable[[int], None]) -> Callable[[int], None]:
        failures = self.task.failures
        return failures.guarded_call(self.node, callback, self.task.failure) if failures.guards_processing else callback

    def share(self) -> None:
        """Let the columnar form of this operator find what it shares with the closure."""
        self._callbacks.lives[self.node] = self.live

    def dropped(self, reason: str) -> None:
        """Count the current record as dropped by this operator, and log it."""
        self.task.drop(self.node, reason)

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback(time)` at intervals; the first time as Kafka Streams does.

        Stream time starts at the epoch, so that it fires with the first record; wall-clock time after one interval.
        """
        stream_time = kind is PunctuationType.STREAM_TIME
        punctuations = self.task.stream_time_punctuations if stream_time else self.task.wall_clock_punctuations
        first_ms = 0 if stream_time else self.task.clock.now_ms() + interval_ms
        key = f"{self.node}:punctuator:{len(self.task.schedules)}"
        first_ms = self.task.deadlines.get(key, first_ms)
        schedule = punctuations.schedule(first_ms, interval_ms, self._guarded(self.named(callback)))
        if self.task.is_new:
            self.task.schedules[key] = schedule
        return schedule


class Callbacks:
    """What the operators of one task registered while they were bound."""

    __slots__ = (
        "_on_error",
        "at_close",
        "at_end_of_input",
        "at_flush",
        "at_idle",
        "chains",
        "codes",
        "lives",
        "memo",
        "remembered",
    )

    def __init__(self, memo: Mapping[str, int], context: TaskContext) -> None:
        self.memo = memo
        self._on_error = self._told(context) if context.failures.guards_processing else None
        self.codes: dict[CodeType, str] = {}  # which operator a closure belongs to
        self.chains: dict[CodeType, tuple[str, ...]] = {}  # and each line of the closure of a chain, below its first
        self.lives: dict[str, Any] = {}  # what operators share with their columnar forms, by node
        self.remembered: dict[str, Callable[[], int]] = {}
        self.at_flush: list[tuple[str, Callable[[], None]]] = []
        self.at_end_of_input: list[tuple[str, Callable[[], None]]] = []
        self.at_idle: list[tuple[str, Callable[[int], bool]]] = []
        self.at_close: list[tuple[str, Callable[[], None]]] = []

    def chained(self, links: Sequence[Link]) -> Forward:
        """One closure for a chain of simple steps, known by its lines as `named` ones are by their code."""
        chain, nodes = compiled(links, self._on_error)
        self.chains[cast("FunctionType", chain).__code__] = nodes
        return chain

    def _told(self, context: TaskContext) -> OnError:
        """What chains call when something fails in them."""

        def on_error(error: Exception, key: Any, value: Any, timestamp: int) -> None:
            at = cast("TracebackType", error.__traceback__)
            node = cast("str", self.operator_at(at.tb_frame.f_code, at.tb_lineno))
            record = Record(key=key, value=value, timestamp=timestamp)
            context.failures.processing(context.failure(node, timestamp), record, error)

        return on_error

    def operator_at(self, code: CodeType, line: int) -> str | None:
        """The operator that a line of code belongs to; None when it is of none."""
        nodes = self.chains.get(code)
        return self.codes.get(code) if nodes is None else nodes[line - code.co_firstlineno - 1]
