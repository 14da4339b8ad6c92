"""The contexts of processors: what each may ask of the task in which it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from kstreams.durations import Duration, to_ms
from kstreams.errors import TopologyError
from kstreams.processor.api.metrics import ProcessorMetrics
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.topology.operator import Forward
from kstreams.record import FixedKeyRecord, Record, RecordMetadata
from kstreams.state.read_only import ReadOnlyView
from kstreams.timestamps import LATEST_MS, InvalidTimestampError

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with defaults: a context without types stays one of anything

    KOut = TypeVar("KOut", default=Any)
    VOut = TypeVar("VOut", default=Any)
else:
    from typing import TypeVar

    KOut, VOut = TypeVar("KOut"), TypeVar("VOut")


class ProcessingContext:
    """What every processor may ask for, whatever it forwards. Kafka Streams: `ProcessingContext`."""

    __slots__ = ("_active", "_context", "_forward")

    def __init__(self, context: OperatorContext, forward: Forward) -> None:
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
    def state_dir(self) -> Path:
        """A folder of this task on the local disk, beside its stores; what lies there is lost with the disk."""
        return self._context.task.state_folder()

    @property
    def metrics(self) -> ProcessorMetrics:
        """Makes sensors: `metrics.add_sensor("rejected").record()`."""
        return ProcessorMetrics(self._context.node, self._context.task.sensors)

    def app_configs(self) -> dict[str, Any]:
        """The settings of the application by Kafka Streams' keys, with the defaults of those nobody set."""
        return dict(self._context.task.config)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, Any]:
        """The settings whose key begins with `prefix`, without it."""
        return self._context.task.config.prefixed(prefix)

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

        Raises
        ------
        TopologyError
            When the interval is shorter than a millisecond, or the kind is none.
        """
        if not isinstance(kind, PunctuationType):
            raise TopologyError(
                f"{self._context.node} schedules a punctuator by {kind!r}: "
                "give PunctuationType.STREAM_TIME or PunctuationType.WALL_CLOCK_TIME."
            )
        return self._context.schedule(to_ms(interval), kind, entered(self, callback))

    def commit(self) -> None:
        """Ask for a commit soon."""
        self._context.task.commit_requested = True

    def get_state_store(self, name: str) -> Any:
        """A store that is connected to this processor, or a global one, which it may only read.

        Raises
        ------
        TopologyError
            For any other name; tells which stores it may use.
        """
        if name in self._context.connected:
            return self._context.state_store(name)
        known = self._context.task.global_stores
        if name not in known:
            raise TopologyError(
                f"{self._context.node} asks for the state store {name!r}, to which it is not connected "
                f"(its stores: {_listed(self._context.connected)}; global ones: {_listed(known)}). "
                "Name it in stores= of this processor, and add it to the topology."
            )
        return ReadOnlyView(known[name])

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

    def _pass_on(self, record: Record[Any, Any] | FixedKeyRecord[Any, Any], child: str | None) -> None:
        if not self._active:
            raise TopologyError(f"{self._context.node} may forward only while it processes a record or punctuates.")
        if not 0 <= record.timestamp <= LATEST_MS:
            raise InvalidTimestampError(record.timestamp, "time starts at the epoch, and ends at 2^62 - 1")
        to = self._forward if child is None else self._child(child)
        task = self._context.task
        headers, task.headers = task.headers, record.headers
        try:
            to(record.key, record.value, record.timestamp)
        finally:
            task.headers = headers

    def _child(self, name: str) -> Forward:
        children = self._context.children
        if name not in children:
            raise TopologyError(
                f"{self._context.node} has no child {name!r} to forward to; its children: {_listed(children)}."
            )
        return children[name]


class ProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """What a `Processor` may ask for; generic in what it forwards. Kafka Streams: `ProcessorContext`."""

    __slots__ = ()

    def forward(self, record: Record[KOut, VOut], child: str | None = None) -> None:
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
            When the record's timestamp is not valid: negative, or after 2^62 - 1 ms.
        """
        self._pass_on(record, child)


class FixedKeyProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """What a `FixedKeyProcessor` may ask for; generic in what it forwards.

    Kafka Streams: `FixedKeyProcessorContext`.
    """

    __slots__ = ()

    def forward(self, record: FixedKeyRecord[KOut, VOut], child: str | None = None) -> None:
        """Pass a record on, with its own timestamp and headers; as `ProcessorContext.forward`.

        Raises
        ------
        TopologyError
            Also for a `Record`, whose key may have been changed.
        """
        if not isinstance(record, FixedKeyRecord):
            raise TopologyError(
                f"{self._context.node} keeps keys as they are: it forwards what record.with_value(...) gives, "
                f"not a {type(record).__name__}. Use process() where keys change."
            )
        self._pass_on(record, child)


class GlobalStoreContext(ProcessorContext[Any, Any]):
    """What a processor that fills a global store may ask for: it has no children and no time of its own."""

    __slots__ = ()

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Refused: what fills a global store forwards nothing."""
        raise TopologyError(f"{self._context.node} fills a global store: it cannot forward records.")

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Refused: what fills a global store is called by its records alone."""
        raise TopologyError(f"{self._context.node} fills a global store: it cannot schedule punctuators.")


def entered(context: ProcessingContext, function: Callable[[Any], None]) -> Callable[[Any], None]:
    """The same function, during which the processor of the context may forward."""

    def entered(argument: Any) -> None:
        context._active = True
        try:
            function(argument)
        finally:
            context._active = False

    return entered


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
