"""`KGroupedTable`: a table grouped by another key, ready to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from kstreams.dsl.graph import (
    Declared,
    Node,
    TableAggregate,
    TableAggregation,
    TableCount,
    TableExpressions,
    TableFold,
    TableRanking,
    TableReduce,
    TableRepartition,
    Typing,
)
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.handle import Handle
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import repartition_topic, validate_name
from kstreams.dsl.sugar.known_types import types_of
from kstreams.dsl.sugar.ranking import list_type, score_of
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class KGroupedTable(Handle, Generic[K, V]):
    """A table grouped by another key. A changed row is removed from its old group and added to its new group.

    Kafka Streams: `KGroupedTable`. `KTable.group_by` returns it.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> cities = StreamsBuilder().table("city-of-user", key=str, value=str)
    >>> users_per_city = cities.group_by(lambda user, city: (city, user), key=str, value=str).count("users-per-city")
    """

    __slots__ = ("_topic_prefix",)

    def __init__(self, graph: GraphBuilder, node: Node, name: str | None) -> None:
        super().__init__(graph, node)
        self._topic_prefix = name if name is None else validate_name(name)

    def count(
        self, materialized: str | Materialized | None = None, *, key: Typing = None, name: str | None = None
    ) -> KTable[K, int]:
        """Count the rows of each group; a count can return to 0. Kafka Streams: `count`.

        Examples
        --------
        >>> import kstreams as ks
        >>> cities = ks.StreamsBuilder().table("city-of-user", key=str, value=str)
        >>> users_per_city = cities.group_by((ks.value, ks.key)).count("users-per-city")
        """
        return self._aggregate(TableCount(), "AGGREGATE", key, None, materialized, name)

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Combine rows of a group by `adder(aggregate, new)`, `subtractor(aggregate, old)`. Kafka Streams: `reduce`.

        Examples
        --------
        >>> import kstreams as ks
        >>> wages = ks.StreamsBuilder().table("wages", key=str, value=int)
        >>> per_letter = wages.group_by(lambda name, wage: (name[0], wage), key=str, value=int)
        >>> total = per_letter.reduce(lambda total, new: total + new, lambda total, old: total - old)
        """
        return self._aggregate(TableReduce(adder, subtractor), "REDUCE", key, value, materialized, name)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        adder: Callable[[K, V, Any], Any],
        subtractor: Callable[[K, V, Any], Any],
        *,
        key: Typing = None,
        value: Declared[A],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A | None],
        subtractor: Callable[[K, V, A], A | None],
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        *,
        key: Typing = None,
        value: Declared[A],
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[K, A]: ...
    @overload
    def aggregate(
        self,
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[K, Any]: ...
    def aggregate(  # type: ignore[misc]  # no field is called initializer
        self,
        initializer: Callable[[], Any] | None = None,
        adder: Callable[[K, V, Any], Any] | None = None,
        subtractor: Callable[[K, V, Any], Any] | None = None,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[K, Any]:
        """Aggregate the rows of each group, by functions or by expressions. Kafka Streams: `aggregate`.

        Parameters
        ----------
        initializer : callable
            Returns the aggregate before the first row of a group.
        adder, subtractor : callable
            `(key, row, aggregate) -> aggregate` for a row that is added to or removed from the group. The old row is
            subtracted before the new one is added.
        **fields : expression
            Instead of functions: the fields of the result, such as `people=ks.len()`; `value=` may set its type. A
            group without rows has no result. `min`, `max`, `min_by`, `max_by`, `quantile` and `n_unique` keep each
            value of a group as a row of the store `<store>-members`, so that the cost of an update is logarithmic.

        Raises
        ------
        TopologyError
            If there are both functions and expressions, or neither, or an expression depends on the order of rows.

        Examples
        --------
        >>> import kstreams as ks
        >>> wages = ks.StreamsBuilder().table("wages", key=str, value=int)
        >>> per_letter = wages.group_by(lambda name, wage: (name[0], wage), key=str, value=int)
        >>> total = per_letter.aggregate(int, lambda k, new, sum: sum + new, lambda k, old, sum: sum - old, value=int)
        >>> top = per_letter.aggregate(people=ks.len(), most=ks.value.max(), wages=ks.value.n_unique())
        """
        if fields and initializer is None and adder is None and subtractor is None:
            return self._aggregate(_expressions(fields), "AGGREGATE", key, value, materialized, name)
        if fields or initializer is None or adder is None or subtractor is None:
            raise TopologyError(
                f"aggregate() at {declared_at()} takes either an initializer, an adder and a subtractor, or named "
                "expressions such as count=ks.len()"
            )
        aggregation = TableFold(initializer, adder, subtractor)
        return self._aggregate(aggregation, "AGGREGATE", key, value, materialized, name)

    def top_n(
        self,
        n: int,
        by: Callable[[V], Any] | Expr,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, list[V]]:
        """Return the `n` rows of each group with the highest scores, best first; the earlier of equal ones first.

        In Kafka Streams, one writes an aggregation into a sorted collection. The store `<store>-members` has all rows
        in the order of their scores: if one of the best is removed, the next one takes its place. The cost of an update
        is logarithmic in the rows of its group. Rows are equal if their bytes are.

        Parameters
        ----------
        n : int
        by : callable or expression
            `row -> score`; a number, text, bytes, a date or time, or a tuple of these.
        value : type, optional
            Type of the rows, if it is not known.

        Raises
        ------
        TopologyError
            If the type of the rows is not known, or `n` is not positive.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> prices = StreamsBuilder().table("price-of-stock", key=str, value=float)
        >>> best = prices.group_by(lambda stock, price: ("all", price), key=str, value=float).top_n(10, by=float)
        """
        row_type = types_of(self._graph, self._node).value.or_declared(value, self._node)
        kind = list_type(row_type, n)
        ranking = TableRanking(n, score_of(by, row_type.python), row_type.python)
        return self._aggregate(ranking, "AGGREGATE", key, kind, materialized, name)

    def _aggregate(
        self,
        aggregation: TableAggregation,
        kind: str,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        names = self._graph.names
        materialization = Materialized.of(materialized)
        store = materialization.name or names.next("KTABLE-AGGREGATE-STATE-STORE-")  # also for reduce
        sink = names.next("KSTREAM-SINK-")
        source = names.next("KSTREAM-SOURCE-")
        operator = names.given_or_next(name, f"KTABLE-{kind}-")
        topic = repartition_topic(self._topic_prefix or store)
        repartition = self._graph.table_repartition_of(self._node, topic)
        if repartition is None:  # aggregations of one named group share the topic
            repartition = self._graph.add(TableRepartition(topic=topic, sink=sink), source, (self._node.name,))
        node = TableAggregate(aggregation=aggregation, store=store, key=key, value=value, materialized=materialization)
        return self._graph.table(self._graph.add(node, operator, (repartition.name,)))


def _expressions(fields: dict[str, Expr]) -> TableExpressions:
    for name, field in fields.items():
        if not isinstance(field, Expr):
            raise TopologyError(
                f"aggregate() at {declared_at()} takes expressions as fields, such as {name}=ks.len(), not {field!r}"
            )
    return TableExpressions(fields)
