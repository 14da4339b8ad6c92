"""The Processor API: the base classes of users' processors, and their suppliers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from kstreams.errors import TopologyError
from kstreams.kernel.arity import can_be_called, parameters_of
from kstreams.processor.api.contexts import FixedKeyProcessorContext, KOut, ProcessorContext, VOut
from kstreams.record import FixedKeyRecord, K, Record, V

if TYPE_CHECKING:
    from kstreams.state.api import StoreBuilder

P = TypeVar("P", "Processor", "FixedKeyProcessor")


class Processor(Generic[K, V, KOut, VOut]):
    """A user's operator. There is one instance per task, which forwards records by `context.forward`.

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
        """Return stores that are added and connected wherever the processor is used.

        Any other supplier may have this method too. Kafka Streams: `ConnectedStoreProvider.stores`.
        """
        return ()

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Prepare for records. Called once before the first record: get stores and schedule punctuators here."""

    def process(self, record: Record[K, V]) -> None:
        """Process a record."""

    def close(self) -> None:
        """Release resources. Called once, when the task closes."""


class FixedKeyProcessor(Generic[K, V, VOut]):
    """A user's operator that does not change keys, so that its results need no repartitioning.

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
        """Return stores that are added and connected wherever the processor is used."""
        return ()

    def init(self, context: FixedKeyProcessorContext[K, VOut]) -> None:
        """Prepare for records. Called once before the first record: get stores and schedule punctuators here."""

    def process(self, record: FixedKeyRecord[K, V]) -> None:
        """Process a record."""

    def close(self) -> None:
        """Release resources. Called once, when the task closes."""


ProcessorSupplier: TypeAlias = Callable[[], Processor]
FixedKeyProcessorSupplier: TypeAlias = Callable[[], FixedKeyProcessor]


def stores_of(supplier: object) -> tuple[StoreBuilder, ...]:
    """Return the stores that a supplier declares; most declare none."""
    return tuple(getattr(supplier, "stores", tuple)())


def check_supplier(supplier: object, kind: type, place: str) -> None:
    """Check that a supplier creates processors, and a new one at each call.

    Parameters
    ----------
    supplier : object
        The user's argument.
    kind : type
        `Processor` or `FixedKeyProcessor`.
    place : str
        Names the operator in the error.

    Raises
    ------
    TopologyError
        If it creates another type of object, or returns the same object again.
    """
    if isinstance(supplier, type) and issubclass(supplier, kind):
        return
    if not callable(supplier):
        raise TopologyError(
            f"{place} was given a {type(supplier).__name__}: give it a {kind.__name__} class, or a function that "
            "creates a new one for each task"
        )
    if not can_be_called(supplier, 0):
        raise TopologyError(
            f"{place} calls its supplier as supplier(), but it takes {parameters_of(supplier)}: "
            "give a supplier without arguments"
        )
    processor = supplier()
    if not isinstance(processor, kind):
        raise TopologyError(
            f"{place} was given a supplier that creates a {type(processor).__name__}: give it a class or function that "
            f"creates a {kind.__name__}."
        )
    if supplier() is processor:
        raise TopologyError(
            f"{place} got the same {kind.__name__} twice: its supplier must make a new one at each call."
        )


def store_names(stores: Iterable[str], place: str) -> tuple[str, ...]:
    """Return the names of stores that the user gives for a processor.

    Raises
    ------
    TopologyError
        If `stores` is one string, whose letters would be taken for names.
    """
    if isinstance(stores, str):
        raise TopologyError(f"{place} takes names of stores: write stores=[{stores!r}]")
    return tuple(stores)
