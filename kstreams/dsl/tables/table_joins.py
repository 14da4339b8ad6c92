"""The joins of a table with another table: by the same key, or by a foreign key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kstreams.dsl.graph import Typing
from kstreams.dsl.graph.table_joins import Partitioner
from kstreams.dsl.handle import Handle
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.tables.joining_tables import ForeignKey, TableJoinOptions, join_tables
from kstreams.expressions import Expr

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VO = TypeVar("VO")
VR = TypeVar("VR")


class TableJoins(Handle, Generic[K, V]):
    """The joins of `KTable`."""

    __slots__ = ()

    def join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V, VO], VR | None] | Expr[VR],
        *,
        foreign_key: Callable[..., Any] | Expr | None = None,
        with_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        partitioner: Partitioner | None = None,
        other_partitioner: Partitioner | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """The rows that both tables have: `joiner(left, right)`. Kafka Streams: `join`.

        Every update of either table updates the result, at the later time of both rows. Both tables need the same
        number of partitions, but for a join by foreign key: of that, left rows and answers travel through two internal
        topics, so that results are eventually consistent and a row may be emitted twice.

        Parameters
        ----------
        other : KTable
        joiner : callable or expression
            Of both rows; None deletes. In an expression `ks.left.value` and `ks.right.value` are the rows.
        foreign_key : callable or expression, optional
            `foreign_key(left)`, or with `with_key=True` `foreign_key(key, left)`, gives the key of the other table's
            row, or None; by default it is the key of the left row.
        key, value : type or Serde, optional
            Of the result, where they are not known. Without `foreign_key` they give the result a store of its own.
        materialized : str or Materialized, optional
            Names the store; without it the result is looked up in both tables.
        partitioner, other_partitioner : callable, optional
            With `foreign_key`: `(topic, key, None, number of partitions) -> partition`, as this and the other table are
            partitioned, where not by their keys (Kafka Streams: `TableJoined`).
        name : str, optional
            Names the operator, and the topics of a join by foreign key.

        Raises
        ------
        TopologyError
            When options of a join by foreign key are given without `foreign_key`.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> prices = builder.table("prices", key=str, value=float)
        >>> stocks = builder.table("stocks", key=str, value=int)
        >>> worth = prices.join(stocks, lambda price, count: price * count, value=float, materialized="worth")
        >>> orders = builder.table("orders", key=str, value=dict[str, str])
        >>> priced = orders.join(prices, lambda order, price: price, foreign_key=lambda order: order["product"])
        """
        options = TableJoinOptions(joiner, key, value, materialized, name, left_outer=False)
        by = ForeignKey(foreign_key, with_key, partitioner, other_partitioner)
        return self._graph.table(join_tables(self, other, options, by))

    def left_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V, VO | None], VR | None] | Expr[VR],
        *,
        foreign_key: Callable[..., Any] | Expr | None = None,
        with_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        partitioner: Partitioner | None = None,
        other_partitioner: Partitioner | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """All rows of this table: `joiner(left, None)` where the other has none. Kafka Streams: `leftJoin`.

        Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> users, cities = (builder.table(topic, key=str, value=str) for topic in ("users", "cities"))
        >>> placed = users.left_join(cities, lambda user, city: f"{user}, {city or 'nowhere'}", value=str)
        """
        options = TableJoinOptions(joiner, key, value, materialized, name, left_outer=True)
        by = ForeignKey(foreign_key, with_key, partitioner, other_partitioner)
        return self._graph.table(join_tables(self, other, options, by))

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

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> old, new = (builder.table(topic, key=str, value=str) for topic in ("old", "new"))
        >>> either = old.outer_join(new, lambda before, now: now or before, value=str)
        """
        options = TableJoinOptions(joiner, key, value, materialized, name, left_outer=True, right_outer=True)
        return self._graph.table(join_tables(self, other, options, ForeignKey()))
