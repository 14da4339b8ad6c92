"""The joins of a table with another table: by the same key, or by a foreign key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kstreams.dsl.graph import Function, Typing
from kstreams.dsl.graph.table_joins import TableJoin
from kstreams.dsl.handle import Handle
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import validate_name
from kstreams.expressions import Expr

if TYPE_CHECKING:
    from kstreams.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VO = TypeVar("VO")
VR = TypeVar("VR")


class TableJoins(Handle, Generic[K, V]):
    """The joins of `KTable`."""

    __slots__ = ()

    def join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO], VR | None] | Expr[VR],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """The rows that both tables have: `joiner(left, right)`. Kafka Streams: `join`.

        Every update of either table updates the result, at the later time of both rows. Both tables need the same
        number of partitions.

        Parameters
        ----------
        other : KTable
        joiner : callable or expression
            Of both rows; None deletes. In an expression `ks.left.value` and `ks.right.value` are the rows.
        key, value : type or Serde, optional
            Of the result, where they are not known. Like `materialized`, they give the result a store of its own.
        materialized : str or Materialized, optional
            Names the store; without it the result is looked up in both tables.
        name : str, optional
            Names the operator.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> prices = builder.table("prices", key=str, value=float)
        >>> stocks = builder.table("stocks", key=str, value=int)
        >>> worth = prices.join(stocks, lambda price, count: price * count, value=float, materialized="worth")
        """
        return self._joined(other, joiner, key, value, materialized, name)

    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO | None], VR | None] | Expr[VR],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """All rows of this table: `joiner(left, None)` where the other has none. Kafka Streams: `leftJoin`.

        Parameters as for `join`.
        """
        return self._joined(other, joiner, key, value, materialized, name, left_outer=True)

    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V | None, VO | None], VR | None] | Expr[VR],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """The rows that either table has; None stands for the other's. Kafka Streams: `outerJoin`.

        Parameters as for `join`.
        """
        return self._joined(other, joiner, key, value, materialized, name, left_outer=True, right_outer=True)

    def _joined(
        self,
        other: Handle,
        joiner: Function,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
        *,
        left_outer: bool = False,
        right_outer: bool = False,
    ) -> KTable[Any, Any]:
        from kstreams.dsl.ktable import KTable

        names, kept = self._graph.names, Materialized.of(materialized)
        if kept.name is None and (materialized, key, value) != (None, None, None):
            kept = kept.named(names.next("KTABLE-MERGE-STATE-STORE-"))
        merge = names.given_or_next(name, "KTABLE-MERGE-")
        node = TableJoin(
            joiner=joiner,
            left_outer=left_outer,
            right_outer=right_outer,
            this_join=names.given_or_next(_suffixed(name, "-join-this"), "KTABLE-JOINTHIS-"),
            other_join=names.given_or_next(_suffixed(name, "-join-other"), "KTABLE-JOINOTHER-"),
            key=key,
            result=value,
            materialized=kept,
        )
        return KTable(self._graph, self._graph.add(node, merge, (self._node.name, other._node.name)))


def _suffixed(name: str | None, suffix: str) -> str | None:
    return None if name is None else f"{validate_name(name)}{suffix}"
