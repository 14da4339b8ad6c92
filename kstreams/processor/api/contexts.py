"""Contexts of processors: the methods by which a processor reaches the task in which it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from kstreams.kernel.durations import Duration
from kstreams.processor.api.metrics import ProcessorMetrics
from kstreams.processor.api.punctuation import Cancellable, PunctuationType
from kstreams.record import FixedKeyRecord, Record, RecordMetadata

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # has defaults, so a context without type arguments accepts any type

    KOut = TypeVar("KOut", default=Any)
    VOut = TypeVar("VOut", default=Any)
else:
    from typing import TypeVar

    KOut = TypeVar("KOut")
    VOut = TypeVar("VOut")
from typing import NamedTuple

from kstreams.record import Headers


class RecordContext(NamedTuple):
    """The input record that is being processed, for functions that choose a topic or a partition."""

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers


class ProcessingContext(ABC):
    """The methods that every processor may call on its context. Kafka Streams: `ProcessingContext`."""

    __slots__ = ()
    _spellings: ClassVar[Mapping[str, str]] = {}  # errors of operators suggest names (`kstreams.kernel.advice.spoken`)

    @property
    @abstractmethod
    def application_id(self) -> str:
        """The application's id."""

    @property
    @abstractmethod
    def task_id(self) -> str:
        """`<sub-topology>_<partition>`."""

    @property
    @abstractmethod
    def state_dir(self) -> Path:
        """The task's folder on the local disk, beside its stores. Its files are lost with the disk."""

    @property
    @abstractmethod
    def metrics(self) -> ProcessorMetrics:
        """The factory of sensors: `metrics.add_sensor("rejected").record()`."""

    @abstractmethod
    def app_configs(self) -> dict[str, object]:
        """Return the settings of the application by Kafka Streams' keys, with defaults for keys that are not set."""

    @abstractmethod
    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        """Return the settings whose key begins with `prefix`, by the key without the prefix."""

    @abstractmethod
    def schedule(self, interval: Duration, kind: PunctuationType, callback: Callable[[int], None]) -> Cancellable:
        """Call `callback(time_ms)` at intervals of stream time or wall-clock time.

        In stream time, the first call is with the first record; the next calls are when the time passes a multiple of
        the interval. If several multiples are passed at once, there is one call. In wall-clock time, the first call
        is after one interval. The returned object has `cancel()`.

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
            If the interval is shorter than a millisecond, or `kind` is not a `PunctuationType`.
        """

    @abstractmethod
    def commit(self) -> None:
        """Ask for a commit soon."""

    @abstractmethod
    def get_state_store(self, name: str) -> Any:
        """Return a store that is connected to this processor, or a global store, which is read-only.

        Raises
        ------
        TopologyError
            For any other name; the error lists the stores that the processor may use.
        """

    @abstractmethod
    def record_metadata(self) -> RecordMetadata | None:
        """Return topic, partition and offset of the input record; None in a punctuator."""

    @abstractmethod
    def current_stream_time_ms(self) -> int:
        """Return the highest timestamp that the task has processed; -1 before the first record."""

    @abstractmethod
    def current_system_time_ms(self) -> int:
        """Return the wall-clock time in milliseconds, from the application's clock."""


class ProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """The context of a `Processor`; generic in the forwarded key and value. Kafka Streams: `ProcessorContext`."""

    __slots__ = ()

    @abstractmethod
    def forward(self, record: Record[KOut, VOut], child: str | None = None) -> None:
        """Pass a record on, with its own timestamp and headers.

        Parameters
        ----------
        record : Record
        child : str, optional
            Name of the only child that gets the record; by default all children get it, in order of declaration.

        Raises
        ------
        TopologyError
            If there is no such child, or if no record is being processed (as in `init`).
        ValueError
            If the record's timestamp is negative or after 2^62 - 1 ms.
        """


class FixedKeyProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """The context of a `FixedKeyProcessor`; generic in the forwarded key and value.

    Kafka Streams: `FixedKeyProcessorContext`.
    """

    __slots__ = ()

    @abstractmethod
    def forward(self, record: FixedKeyRecord[KOut, VOut], child: str | None = None) -> None:
        """Pass a record on, with its own timestamp and headers, as `ProcessorContext.forward` does.

        Raises
        ------
        TopologyError
            Also if `record` is a `Record`, whose key may have been changed.
        """
