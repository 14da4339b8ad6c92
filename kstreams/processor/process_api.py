"""The Processor API: what a user's own processor is, and what it may ask of its context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kstreams.config import Config
from kstreams.durations import Duration, to_ms
from kstreams.errors import TopologyError
from kstreams.processor.context import NodeContext
from kstreams.processor.operator import Forward
from kstreams.processor.punctuation import Cancellable, PunctuationType
from kstreams.record import Record, RecordMetadata

K = TypeVar("K")
V = TypeVar("V")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")


class Processor(Generic[K, V, KOut, VOut]):
    """A step written by hand: one instance per task; nothing is forwarded unless it says so.

    Kafka Streams: `Processor`.

    Examples
    --------
    >>> class Louder(Processor[str, str, str, str]):
    ...     def init(self, context):
    ...         self.context = context
    ...
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))
    """

    def init(self, context: ProcessorContext) -> None:
        """Called once, before the first record: the place to get stores and to schedule punctuators."""

    def process(self, record: Record[K, V]) -> None:
        """Called with each record."""

    def close(self) -> None:
        """Called once, when the task closes."""


class ProcessorContext:
    """What a processor may ask for. Kafka Streams: `ProcessorContext`."""

    __slots__ = ("_active", "_context", "_forward")

    def __init__(self, context: NodeContext, forward: Forward) -> None:
        self._context, self._forward, self._active = context, forward, False

    @property
    def application_id(self) -> str:
        """The application's id."""
        return self._context.task.application_id

    @property
    def task_id(self) -> str:
        """`<sub-topology>_<partition>`."""
        return self._context.task.task_id

    @property
    def config(self) -> Config:
        """The settings of the application."""
        return self._context.task.config

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Pass a record on, with its own timestamp and headers.

        Parameters
        ----------
        record : Record
        child : str, optional
            Name of the only child that shall get it; by default all get it, in order of declaration.

        Raises
        ------
        TopologyError
            When there is no such child, or when nothing is being processed (as in `init`).
        ValueError
            When the record's timestamp is negative.
        """
        if not self._active:
            raise TopologyError(f"{self._context.node} may forward only while it processes a record or punctuates.")
        if record.timestamp < 0:
            raise ValueError(f"the timestamp {record.timestamp} is negative: time starts at the epoch")
        to = self._forward if child is None else self._child(child)
        task = self._context.task
        headers, task.headers = task.headers, record.headers
        to(record.key, record.value, record.timestamp)
        task.headers = headers

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback(time_ms)` at intervals of stream time or wall-clock time.

        In stream time it is called first with the first record, and then whenever the time passes a multiple of the
        interval; of several that were passed at once, one is kept. In wall-clock time it is called first after one
        interval. What it returns has `cancel()`.

        Parameters
        ----------
        interval : timedelta or int (ms)
            At least one millisecond.
        kind : PunctuationType
        callback : callable
            Takes the current time in milliseconds.
        """
        return self._context.schedule(to_ms(interval), kind, self._entered(callback))

    def commit(self) -> None:
        """Ask for a commit soon."""
        self._context.task.commit_requested = True

    def get_state_store(self, name: str) -> Any:
        """A store that is connected to this processor, or a global one; raises TopologyError for any other."""
        return self._context.state_store(name)

    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the input record; None in a punctuator."""
        task = self._context.task
        return None if task.topic is None else RecordMetadata(task.topic, task.partition, task.offset)

    def current_stream_time_ms(self) -> int:
        """The highest timestamp the task has seen, -1 before the first record."""
        return self._context.task.stream_time

    def current_system_time_ms(self) -> int:
        """Wall-clock time in milliseconds, from the application's clock."""
        return self._context.task.clock.now_ms()

    def _child(self, name: str) -> Forward:
        children = self._context.children
        if name not in children:
            known = ", ".join(children) or "none"
            raise TopologyError(f"{self._context.node} has no child {name!r} to forward to; its children: {known}.")
        return children[name]

    def _entered(self, function: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same function, during which the processor may forward."""

        def entered(argument: Any) -> None:
            self._active = True
            try:
                function(argument)
            finally:
                self._active = False

        return entered


def start(processor: Processor[Any, Any, Any, Any], context: NodeContext, forward: Forward) -> Callable[[Any], None]:
    """Initialise a processor in a task; returns what takes its records."""
    own = ProcessorContext(context, forward)
    context.task.follows_time = True
    processor.init(own)
    context.at_close(processor.close)
    return own._entered(processor.process)


def make_processor(supplier: Callable[[], Any], node: str) -> Processor[Any, Any, Any, Any]:
    """A new processor from a supplier, which must not give the same one to two tasks.

    Raises
    ------
    TopologyError
        When it makes something else, or the same object again.
    """
    made = supplier()
    if not isinstance(made, Processor):
        raise TopologyError(
            f"{node} needs a class or function that makes a Processor; what it was given makes a {type(made).__name__}."
        )
    if supplier() is made:
        raise TopologyError(f"{node} got the same Processor twice: its supplier must make a new one at each call.")
    return made
