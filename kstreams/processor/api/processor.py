"""The Processor API: what a user's own processors are, and what supplies them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from kstreams.errors import TopologyError
from kstreams.kernel.arity import can_be_called, parameters_of
from kstreams.processor.api.contexts import FixedKeyProcessorContext, ProcessorContext
from kstreams.record import FixedKeyRecord, Record

if TYPE_CHECKING:
    from kstreams.state.api import StoreBuilder

K = TypeVar("K")
V = TypeVar("V")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")
P = TypeVar("P", "Processor[Any, Any, Any, Any]", "FixedKeyProcessor[Any, Any, Any]")


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

    @classmethod
    def stores(cls) -> Iterable[StoreBuilder]:
        """Stores that the processor brings along: they are added and connected wherever it is used.

        Any other supplier may have such a method too. Kafka Streams: `ConnectedStoreProvider.stores`.
        """
        return ()

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Called once, before the first record: the place to get stores and to schedule punctuators."""

    def process(self, record: Record[K, V]) -> None:
        """Called with each record."""

    def close(self) -> None:
        """Called once, when the task closes."""


class FixedKeyProcessor(Generic[K, V, VOut]):
    """A step written by hand that leaves keys as they are, so that nothing needs to be repartitioned after it.

    Kafka Streams: `FixedKeyProcessor`.

    Examples
    --------
    >>> class Louder(FixedKeyProcessor[str, str, str]):
    ...     def init(self, context):
    ...         self.context = context
    ...
    ...     def process(self, record):
    ...         self.context.forward(record.with_value(record.value.upper()))
    """

    @classmethod
    def stores(cls) -> Iterable[StoreBuilder]:
        """Stores that the processor brings along, as those of a `Processor`."""
        return ()

    def init(self, context: FixedKeyProcessorContext[K, VOut]) -> None:
        """Called once, before the first record: the place to get stores and to schedule punctuators."""

    def process(self, record: FixedKeyRecord[K, V]) -> None:
        """Called with each record."""

    def close(self) -> None:
        """Called once, when the task closes."""


ProcessorSupplier: TypeAlias = Callable[[], Processor[Any, Any, Any, Any]]
FixedKeyProcessorSupplier: TypeAlias = Callable[[], FixedKeyProcessor[Any, Any, Any]]


def stores_of(supplier: object) -> tuple[StoreBuilder, ...]:
    """The stores that a supplier brings along; most bring none."""
    return tuple(getattr(supplier, "stores", tuple)())


def check_supplier(supplier: object, kind: type, place: str) -> None:
    """Make sure that a supplier makes processors, and a new one at each call.

    Parameters
    ----------
    supplier : object
        What the user gave.
    kind : type
        `Processor` or `FixedKeyProcessor`.
    place : str
        Names the operator in the error.

    Raises
    ------
    TopologyError
        When it makes something else, or the same object again.
    """
    if isinstance(supplier, type) and issubclass(supplier, kind):
        return
    if not callable(supplier):
        raise TopologyError(
            f"{place} was given a {type(supplier).__name__}: give it a {kind.__name__} class, or a function that makes "
            "a new one for each task"
        )
    if not can_be_called(supplier, 0):
        raise TopologyError(f"{place} calls its supplier as supplier(), but it takes {parameters_of(supplier)}")
    processor = supplier()
    if not isinstance(processor, kind):
        raise TopologyError(
            f"{place} needs a class or function that makes a {kind.__name__}; what it was given makes a "
            f"{type(processor).__name__}."
        )
    if supplier() is processor:
        raise TopologyError(
            f"{place} got the same {kind.__name__} twice: its supplier must make a new one at each call."
        )


def store_names(stores: Iterable[str], place: str) -> tuple[str, ...]:
    """The stores that the user names for a processor.

    Raises
    ------
    TopologyError
        When it is one text, whose letters would be taken for names.
    """
    if isinstance(stores, str):
        raise TopologyError(f"{place} takes names of stores: write stores=[{stores!r}]")
    return tuple(stores)
