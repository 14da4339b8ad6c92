"""Operators that run processors of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.calls import Retries
from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.sources import Consumed
from kstreams.dsl.sugar.changed_rows import ChangedRows
from kstreams.dsl.sugar.deduplication import Deduplication
from kstreams.processor.api.processor import stores_of
from kstreams.state.api import StoreBuilder


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Process(Node):
    """Passes each record to a processor, which forwards any records.

    Parameters
    ----------
    supplier : callable
        Returns a new processor for each task.
    stores : tuple of str
        Names of the state stores that it uses, besides those that the supplier adds.
    """

    keys: ClassVar[Keys] = Keys.CHANGED
    changes_values: ClassVar[bool] = True

    supplier: Annotated[Callable[[], Any], called_with()]
    stores: tuple[str, ...] = ()
    key: Typing = None
    value: Typing = None

    @property
    def supplied_stores(self) -> tuple[StoreBuilder, ...]:
        """The stores that the supplier adds."""
        return stores_of(self.supplier)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProcessValues(Process):
    """Passes each record to a processor that cannot change keys."""

    keys: ClassVar[Keys] = Keys.KEPT

    retries: Retries | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Deduplicate(ProcessValues):
    """Forwards the first of the records that have equal deduplication keys within a time."""

    supplier: Annotated[Deduplication, called_with()]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ApplyChanges(ProcessValues):
    """Turns the changes of a database table into its rows, and drops copies of changes.

    A truncation deletes rows of other keys, but only those of the same partition.
    """

    supplier: Annotated[ChangedRows, called_with()]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalStore(Node):
    """A topic whose records a processor writes to a store in every instance; it has no output."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    store: StoreBuilder
    topic: str
    source: str
    supplier: Annotated[Callable[[], Any], called_with()]
    consumed: Consumed = field(default_factory=Consumed)
