"""The contexts of processors: what each kind of processor may ask of the task in which it runs."""

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
    from typing_extensions import TypeVar  # with defaults: a context without types stays one of anything

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
    """What every processor may ask for, whatever it forwards. Kafka Streams: `ProcessingContext`."""

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
        """A folder of this task on the local disk, beside its stores; what lies there is lost with the disk."""

    @property
    @abstractmethod
    def metrics(self) -> ProcessorMetrics:
        """Makes sensors: `metrics.add_sensor("rejected").record()`."""

    @abstractmethod
    def app_configs(self) -> dict[str, object]:
        """The settings of the application by Kafka Streams' keys, with the defaults of those nobody set."""

    @abstractmethod
    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        """The settings whose key begins with `prefix`, without it."""

    @abstractmethod
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

    @abstractmethod
    def commit(self) -> None:
        """Ask for a commit soon."""

    @abstractmethod
    def get_state_store(self, name: str) -> Any:
        """A store that is connected to this processor, or a global one, which it may only read.

        Raises
        ------
        TopologyError
            For any other name; the error names the stores it may use.
        """

    @abstractmethod
    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the input record; None in a punctuator."""

    @abstractmethod
    def current_stream_time_ms(self) -> int:
        """The highest timestamp the task has seen, -1 before the first record."""

    @abstractmethod
    def current_system_time_ms(self) -> int:
        """Wall-clock time in milliseconds, from the application's clock."""


class ProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """What a `Processor` may ask for; generic in what it forwards. Kafka Streams: `ProcessorContext`."""

    __slots__ = ()

    @abstractmethod
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


class FixedKeyProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """What a `FixedKeyProcessor` may ask for; generic in what it forwards.

    Kafka Streams: `FixedKeyProcessorContext`.
    """

    __slots__ = ()

    @abstractmethod
    def forward(self, record: FixedKeyRecord[KOut, VOut], child: str | None = None) -> None:
        """Pass a record on, with its own timestamp and headers; as `ProcessorContext.forward`.

        Raises
        ------
        TopologyError
            Also for a `Record`, whose key may have been changed.
        """
