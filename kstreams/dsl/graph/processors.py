"""Steps that the user writes as processors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.sources import Consumed
from kstreams.dsl.sugar.deduplication import Deduplication
from kstreams.processor.api.processor import stores_of
from kstreams.state.api import StoreBuilder


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Process(Node):
    """Gives each record to a processor, which forwards what it likes.

    Parameters
    ----------
    supplier : callable
        Makes a new processor for each task.
    stores : tuple of str
        Names of the state stores it uses, beside those that the supplier brings.
    """

    keys: ClassVar[Keys] = Keys.CHANGED
    changes_values: ClassVar[bool] = True

    supplier: Annotated[Callable[[], Any], called_with()]
    stores: tuple[str, ...] = ()
    key: Typing = None
    value: Typing = None

    @property
    def brought(self) -> tuple[StoreBuilder, ...]:
        """The stores that the supplier brings along."""
        return stores_of(self.supplier)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ProcessValues(Process):
    """Gives each record to a processor that leaves keys as they are."""

    keys: ClassVar[Keys] = Keys.KEPT


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Deduplicate(ProcessValues):
    """The first of the records with the same mark within a time."""

    supplier: Annotated[Deduplication, called_with()]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalStore(Node):
    """A topic whose every record goes through a processor into a store that every instance has; nothing follows it."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    store: StoreBuilder
    topic: str
    source: str
    supplier: Annotated[Callable[[], Any], called_with()]
    consumed: Consumed = field(default_factory=Consumed)
