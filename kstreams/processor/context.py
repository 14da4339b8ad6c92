"""`TaskContext` and `NodeContext`: what the closures of a task share, and what one of them is given to bind itself."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import length_hint
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.processor.chain import Link, compiled
from kstreams.processor.operator import Forward
from kstreams.processor.punctuation import Cancellable, Punctuations, PunctuationType
from kstreams.record import Headers

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S")


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
    topic : str
        Where its records came from.
    offsets, stream_times : numpy int64 array, shape (n,)
        Of each record: its offset, and the highest timestamp up to and with it.
    timestamps : list of int, length n
        Event time of each record in milliseconds; the loop takes them from `cursor`.
    """

    __slots__ = ("cursor", "offsets", "stream_times", "topic")

    def __init__(
        self,
        topic: str,
        offsets: np.ndarray[Any, np.dtype[np.int64]],
        stream_times: np.ndarray[Any, np.dtype[np.int64]],
        timestamps: list[int],
    ) -> None:
        self.topic, self.offsets, self.stream_times = topic, offsets, stream_times
        self.cursor = iter(timestamps)

    @property
    def row(self) -> int:
        """Which record was taken last, from 0."""
        return len(self.offsets) - 1 - length_hint(self.cursor)


class TaskContext:
    """What belongs to a whole task and to the input record it is processing.

    An operator that emits something it kept sets `headers` to those of what it kept. `run` is None, and so is the
    topic, outside of any record: in punctuators and at flushes.
    """

    __slots__ = (
        "_stream_time",
        "application_id",
        "caching",
        "clock",
        "commit_requested",
        "config",
        "deadlines",
        "dropped",
        "follows_time",
        "global_stores",
        "headers",
        "is_new",
        "partition",
        "run",
        "schedules",
        "shared",
        "stores",
        "stream_time_punctuations",
        "task_id",
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
    ) -> None:
        self.application_id, self.task_id, self.partition = application_id, task_id, partition
        self.config, self.clock = config, clock
        self.stores, self.global_stores = stores, global_stores
        self.shared: dict[str, Any] = {}
        self.caching: bool = config["statestore.cache.max.bytes"] > 0
        self.run: Run | None = None
        self.headers: Headers = ()
        self._stream_time = stream_time
        self.follows_time = False  # whether a processor may schedule punctuators of stream time
        self.commit_requested = False
        self.dropped: Counter[tuple[str, str]] = Counter()
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

    def leave(self) -> None:
        """No record is being processed any more."""
        self._stream_time = self.stream_time
        self.run, self.headers = None, ()

    def place(self) -> str:
        """Where the input record came from, as errors and log lines say it."""
        return "(none: outside of any record)" if self.run is None else f"{self.topic}-{self.partition}@{self.offset}"

    def drop(self, node: str, reason: str, place: str, count: int = 1) -> None:
        """Count records that a node skips; the first of each reason is a warning in the log, the others are debug."""
        level = logging.DEBUG if self.dropped[node, reason] else logging.WARNING
        self.dropped[node, reason] += count
        logger.log(level, "task %s: %s dropped record %s: %s", self.task_id, node, place, reason)


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
    """

    __slots__ = ("_callbacks", "children", "live", "node", "task")

    def __init__(self, node: str, task: TaskContext, children: Mapping[str, Forward], callbacks: Callbacks) -> None:
        self.node, self.task, self.children, self._callbacks = node, task, children, callbacks
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
        return found

    def shared(self, name: str, make: Callable[[], S]) -> S:
        """An object that operators of one task share, made by the first that asks for it."""
        found: S = self.task.shared.setdefault(name, make())
        return found

    def at_flush(self, callback: Callable[[], None]) -> None:
        """Call `callback` at every flush, parents before children."""
        self._callbacks.at_flush.append((self.node, self.named(callback)))

    def at_end_of_input(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when bounded input has ended, parents before children."""
        self._callbacks.at_end_of_input.append((self.node, self.named(callback)))

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

    def share(self) -> None:
        """Let the columnar form of this operator find what it shares with the closure."""
        self._callbacks.lives[self.node] = self.live

    def dropped(self, reason: str) -> None:
        """Count the current record as dropped by this operator, and log it."""
        self.task.drop(self.node, reason, self.task.place())

    def schedule(self, interval_ms: int, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback(time)` at intervals; the first time as Kafka Streams does.

        Stream time starts at the epoch, so that it fires with the first record; wall-clock time after one interval.
        """
        stream_time = kind is PunctuationType.STREAM_TIME
        punctuations = self.task.stream_time_punctuations if stream_time else self.task.wall_clock_punctuations
        first_ms = 0 if stream_time else self.task.clock.now_ms() + interval_ms
        key = f"{self.node}:punctuator:{len(self.task.schedules)}"
        first_ms = self.task.deadlines.get(key, first_ms)
        schedule = punctuations.schedule(first_ms, interval_ms, self.named(callback))
        if self.task.is_new:
            self.task.schedules[key] = schedule
        return schedule


class Callbacks:
    """What the operators of one task registered while they were bound."""

    __slots__ = ("at_close", "at_end_of_input", "at_flush", "chains", "codes", "lives", "memo", "remembered")

    def __init__(self, memo: Mapping[str, int]) -> None:
        self.memo = memo
        self.codes: dict[CodeType, str] = {}  # which operator a closure belongs to
        self.chains: dict[CodeType, tuple[str, ...]] = {}  # and each line of the closure of a chain, below its first
        self.lives: dict[str, Any] = {}  # what operators share with their columnar forms, by node
        self.remembered: dict[str, Callable[[], int]] = {}
        self.at_flush: list[tuple[str, Callable[[], None]]] = []
        self.at_end_of_input: list[tuple[str, Callable[[], None]]] = []
        self.at_close: list[tuple[str, Callable[[], None]]] = []

    def chained(self, links: Sequence[Link]) -> Forward:
        """One closure for a chain of simple steps, known by its lines as `named` ones are by their code."""
        chain, nodes = compiled(links)
        self.chains[cast("FunctionType", chain).__code__] = nodes
        return chain

    def operator_at(self, code: CodeType, line: int) -> str | None:
        """The operator that a line of code belongs to; None when it is of none."""
        nodes = self.chains.get(code)
        return self.codes.get(code) if nodes is None else nodes[line - code.co_firstlineno - 1]
