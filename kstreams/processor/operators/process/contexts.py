"""The contexts of processors in a task; `processor/api/contexts.py` describes their methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kstreams.errors import TopologyError
from kstreams.kernel.durations import Duration, time_ms, to_ms
from kstreams.kernel.timestamps import LATEST_MS, InvalidTimestampError
from kstreams.processor.api.contexts import FixedKeyProcessorContext, ProcessingContext, ProcessorContext
from kstreams.processor.api.metrics import ProcessorMetrics
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.topology.operator import Forward
from kstreams.record import FixedKeyRecord, Record, RecordMetadata
from kstreams.state.read_only_store import ReadOnlyView
from kstreams.state.timed_store import TimedStore

_RECORDS = (Record, FixedKeyRecord)


class TaskProcessingContext(ProcessingContext):
    """The methods that the contexts of all processors of a task share."""

    __slots__ = ("_active", "_context", "_current", "_forward")

    def __init__(self, context: OperatorContext, forward: Forward) -> None:
        self._context = context
        self._forward = forward
        self._active = False
        """True while the processor may forward."""
        self._current = context.current

    @property
    def application_id(self) -> str:
        return self._context.task.application.id

    @property
    def task_id(self) -> str:
        return self._context.task.task_id

    @property
    def state_dir(self) -> Path:
        return self._context.task.state_folder()

    @property
    def metrics(self) -> ProcessorMetrics:
        return ProcessorMetrics(self._context.node, self._context.task.sensors)

    def app_configs(self) -> dict[str, object]:
        return dict(self._context.task.application.settings.app_configs)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._context.task.application.settings.app_configs_with_prefix(prefix)

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        if not isinstance(kind, PunctuationType):
            raise TopologyError(
                f"{self._context.node} schedules a punctuator by {kind!r}: "
                "give PunctuationType.STREAM_TIME or PunctuationType.WALL_CLOCK_TIME."
            )
        if not callable(callback):
            raise TypeError(f"schedule() calls a function with the time in ms, which {callback!r} is not")
        return self._context.schedule(to_ms(interval), kind, while_active(self, callback))

    def commit(self) -> None:
        self._context.task.commit_request.make()

    def get_state_store(self, name: str) -> Any:
        if name in self._context.connected:
            return _for_processors(self._context.state_store(name))
        global_stores = self._context.task.global_stores
        if name not in global_stores:
            raise TopologyError(
                f"{self._context.node} asks for the state store {name!r}, to which it is not connected "
                f"(its stores: {_names(self._context.connected)}; global ones: {_names(global_stores)}). "
                "Name it in stores= of this processor, and add it to the topology."
            )
        return ReadOnlyView(global_stores[name])

    def record_metadata(self) -> RecordMetadata | None:
        return self._context.current.metadata()

    def current_stream_time_ms(self) -> int:
        return self._context.current.stream_time

    def current_system_time_ms(self) -> int:
        return self._context.task.application.clock.wall_ms()

    def _forward_record(
        self, record: Record[object, object] | FixedKeyRecord[object, object], child: str | None
    ) -> None:
        if not self._active:
            raise TopologyError(f"{self._context.node} may forward only while it processes a record or punctuates.")
        if not isinstance(record, _RECORDS):
            raise TypeError(
                f"forward() takes a record, not {record!r}: forward(record.with_value(...)), or "
                "forward(ks.Record(key=..., value=..., timestamp=...))"
            )
        timestamp = record.timestamp if type(record.timestamp) is int else time_ms(record.timestamp)
        if not 0 <= timestamp <= LATEST_MS:
            raise InvalidTimestampError.out_of_range(timestamp, "time starts at the epoch, and ends at 2^62 - 1")
        forward = self._forward if child is None else self._child(child)
        current = self._current
        input_headers = current.headers
        current.headers = record.headers  # as in `forward_with`, but without another call per record
        try:
            forward(record.key, record.value, timestamp)
        finally:
            current.headers = input_headers

    def _child(self, name: str) -> Forward:
        children = self._context.children
        if name not in children:
            raise TopologyError(
                f"{self._context.node} has no child {name!r} to forward to; its children: {_names(children)}."
            )
        return children[name]


class TaskProcessorContext(TaskProcessingContext, ProcessorContext):
    """The context of a `Processor`."""

    __slots__ = ()

    def forward(self, record: Record[object, object], child: str | None = None) -> None:
        self._forward_record(record, child)


class TaskFixedKeyProcessorContext(TaskProcessingContext, FixedKeyProcessorContext):
    """The context of a `FixedKeyProcessor`."""

    __slots__ = ()

    def forward(self, record: FixedKeyRecord[object, object], child: str | None = None) -> None:
        if not isinstance(record, FixedKeyRecord):
            raise TopologyError(
                f"{self._context.node} keeps keys as they are: it forwards what record.with_value(...) returns, "
                f"not a {type(record).__name__}. Use process() to change keys."
            )
        self._forward_record(record, child)


class GlobalStoreContext(TaskProcessorContext):
    """The context of a processor that fills a global store. It has no children and no punctuators."""

    __slots__ = ()

    def forward(self, record: Record[object, object], child: str | None = None) -> None:
        """Raise a TopologyError."""
        raise TopologyError(f"{self._context.node} fills a global store: it cannot forward records.")

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Raise a TopologyError."""
        raise TopologyError(f"{self._context.node} fills a global store: it cannot schedule punctuators.")


def _for_processors(store: object) -> Any:
    """Return a store whose methods take datetimes as well as milliseconds, if its kind has methods that take times."""
    kind = getattr(getattr(store, "builder", None), "kind", None)  # a custom store has no builder
    return TimedStore(store, kind.times) if kind is not None and kind.times else store


def while_active(context: TaskProcessingContext, function: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a function that calls `function` and lets the processor of the context forward meanwhile."""

    def call_while_active(argument: object) -> None:
        context._active = True
        try:
            function(argument)
        finally:
            context._active = False

    return call_while_active


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
