"""`MockProcessorContext`: a context for the test of a processor alone, which records the processor's calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.config import Config
from kstreams.errors import StateError, TopologyError
from kstreams.kernel.durations import Duration, to_ms
from kstreams.processor.api.contexts import FixedKeyProcessorContext, ProcessorContext
from kstreams.processor.api.metrics import ProcessorMetrics, Sensor
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.record import FixedKeyRecord, Record, RecordMetadata
from kstreams.state import StoreBuilder, open_task_state


class CapturedForward(NamedTuple):
    """A forwarded record; `child` is None if it went to all children."""

    record: Record[object, object] | FixedKeyRecord[object, object]
    child: str | None = None


@dataclass(slots=True, eq=False)
class CapturedPunctuator(Cancellable):
    """A scheduled punctuator; the test calls its `callback(time_ms)`."""

    kind: PunctuationType = PunctuationType.STREAM_TIME


class MockProcessorContext(ProcessorContext, FixedKeyProcessorContext):
    """A context of a `Processor` or `FixedKeyProcessor` for a test of the processor alone.

    Kafka Streams: `MockProcessorContext`. Nothing happens by itself: the test sets times and metadata, calls
    punctuators, and reads what was forwarded, scheduled and committed.

    Parameters
    ----------
    config : mapping, optional
        Settings by Kafka Streams' keys; `application.id` is "test" unless given.
    task_id : str
        `<sub-topology>_<partition>`.
    state_dir : path, optional
        The task's folder, for processors that read `state_dir`.

    Examples
    --------
    >>> import kstreams as ks
    >>> class Louder(ks.Processor):
    ...     def init(self, context):
    ...         self.context = context
    ...
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))
    >>> context, processor = MockProcessorContext(), Louder()
    >>> processor.init(context)
    >>> processor.process(ks.Record(key="k", value="hey"))
    >>> [captured.record.value for captured in context.forwarded()]
    ['HEY']
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        task_id: str = "0_0",
        state_dir: str | Path | None = None,
    ) -> None:
        self._config = Config.of({"application.id": "test", **(config or {})})
        self._task_id = task_id
        self._state_dir = state_dir
        self._forwards: list[CapturedForward] = []
        self._punctuators: list[CapturedPunctuator] = []
        self._stores: dict[str, object] = {}
        self._sensors: dict[tuple[str, str], Sensor] = {}
        self._metadata: RecordMetadata | None = None
        self._stream_time_ms = -1
        self._system_time_ms = 0
        self._committed = False

    # ---- methods for the test

    def forwarded(self, child: str | None = None) -> list[CapturedForward]:
        """Return the records forwarded so far; with `child`, only the records that this child would have received."""
        return [captured for captured in self._forwards if child is None or captured.child in {None, child}]

    def reset_forwards(self) -> None:
        """Forget the forwarded records."""
        self._forwards.clear()

    def committed(self) -> bool:
        """Return whether a commit was requested."""
        return self._committed

    def reset_commit(self) -> None:
        """Forget that a commit was requested."""
        self._committed = False

    def scheduled_punctuators(self) -> list[CapturedPunctuator]:
        """Return the scheduled punctuators, including cancelled ones."""
        return list(self._punctuators)

    def set_record_metadata(self, topic: str, partition: int = 0, offset: int = 0) -> None:
        """Set topic, partition and offset of the input record."""
        self._metadata = RecordMetadata(topic, partition, offset)

    def set_current_stream_time_ms(self, time_ms: int) -> None:
        """Set the result of `current_stream_time_ms`; -1 at first."""
        self._stream_time_ms = time_ms

    def set_current_system_time_ms(self, time_ms: int) -> None:
        """Set the result of `current_system_time_ms`; 0 at first."""
        self._system_time_ms = time_ms

    def add_state_store(self, store: StoreBuilder | Any) -> Any:
        """Give the processor a store: a builder of `Stores`, opened in memory, or any object with a `name`."""
        if isinstance(store, StoreBuilder):
            opened = open_task_state([store], caching=self._config.caches).stores[store.name]
        else:
            opened = store
        self._stores[store.name] = opened
        return opened

    # ---- methods for the processor

    @property
    def application_id(self) -> str:
        return self._config.application_id

    @property
    def task_id(self) -> str:
        return self._task_id

    @property
    def state_dir(self) -> Path:
        if self._state_dir is None:
            raise StateError("the processor asks for state_dir: give MockProcessorContext a folder as state_dir=")
        return Path(self._state_dir)

    @property
    def metrics(self) -> ProcessorMetrics:
        return ProcessorMetrics("processor", self._sensors)

    def app_configs(self) -> dict[str, object]:
        return dict(self._config)

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._config.prefixed(prefix)

    def forward(self, record: Any, child: str | None = None) -> None:
        self._forwards.append(CapturedForward(record, child))

    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        interval_ms = to_ms(interval)
        if interval_ms < 1:
            raise TopologyError(f"A punctuator needs an interval of at least 1 ms; it got {interval_ms}.")
        captured = CapturedPunctuator(interval_ms, callback, kind=kind)
        self._punctuators.append(captured)
        return captured

    def commit(self) -> None:
        self._committed = True

    def get_state_store(self, name: str) -> Any:
        if name not in self._stores:
            names = ", ".join(sorted(self._stores)) or "none"
            raise TopologyError(
                f"the processor asks for the state store {name!r}: add it with add_state_store() (there: {names})"
            )
        return self._stores[name]

    def record_metadata(self) -> RecordMetadata | None:
        return self._metadata

    def current_stream_time_ms(self) -> int:
        return self._stream_time_ms

    def current_system_time_ms(self) -> int:
        return self._system_time_ms
