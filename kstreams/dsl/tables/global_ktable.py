"""`GlobalKTable`: a table of which every instance holds all rows."""

from __future__ import annotations

from typing import Generic, TypeVar

from kstreams.dsl.graph import GlobalTableSource
from kstreams.dsl.handle import Handle

K = TypeVar("K")
V = TypeVar("V")


class GlobalKTable(Handle, Generic[K, V]):
    """A table for joins of a stream by any key, without repartitioning. Kafka Streams: `GlobalKTable`."""

    __slots__ = ()

    @property
    def queryable_store_name(self) -> str | None:
        """The name of its store, if the user gave one."""
        assert isinstance(self._node, GlobalTableSource)
        return self._node.materialized.name
