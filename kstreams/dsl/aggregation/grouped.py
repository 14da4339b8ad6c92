"""`KGroupedStream`: a stream grouped by key, ready to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from kstreams.dsl.aggregation.aggregation import fold_or_expressions
from kstreams.dsl.aggregation.cogrouped import CogroupedKStream
from kstreams.dsl.aggregation.session_windowed import SessionWindowedKStream
from kstreams.dsl.aggregation.windowed import TimeWindowedKStream, WindowedKStream
from kstreams.dsl.graph import (
    Aggregation,
    Count,
    Declared,
    Grouped,
    Node,
    Reduce,
    StreamAggregate,
    Typing,
)
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.handle import Handle, repartitioned
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import validate_name
from kstreams.dsl.sugar.known_types import types_of
from kstreams.dsl.sugar.ranking import best_of, list_type
from kstreams.dsl.window_kinds import window_kind
from kstreams.expressions import Expr
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class KGroupedStream(Handle, Generic[K, V]):
    """What `group_by` and `group_by_key` give. Kafka Streams: `KGroupedStream`.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> purchases = StreamsBuilder().stream("purchases", key=str, value=int)
    >>> total = purchases.group_by_key().reduce(lambda a, b: a + b, materialized="totals")
    """

    __slots__ = ("_grouped", "_topic_prefix")

    def __init__(self, graph: GraphBuilder, node: Node, grouped: Grouped, name: str | None) -> None:
        super().__init__(graph, node)
        self._grouped = grouped
        self._topic_prefix = name if name is None else validate_name(name)

    def count(
        self,
        materialized: str | Materialized | None = None,
        *,
        key: Typing = None,
        name: str | None = None,
    ) -> KTable[K, int]:
        """How many records each key has; those with a null key or value do not count. Kafka Streams: `count`.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> counts = clicks.count("clicks-per-user")
        """
        return self._aggregate(Count(), "AGGREGATE", key, None, materialized, name)

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """`reducer(aggregate, value)` over the values of a key; the first stands as it is. Kafka Streams: `reduce`.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> highest = clicks.reduce(max, materialized="highest")
        """
        return self._aggregate(Reduce(reducer), "REDUCE", key, value, materialized, name)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        aggregator: Callable[[K, V, Any], Any],
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
        aggregator: Callable[[K, V, A], A | None],
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
        aggregator: Callable[[K, V, Any], Any] | None = None,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
        **fields: Expr,
    ) -> KTable[K, Any]:
        """Aggregate by functions, or by named expressions. Kafka Streams: `aggregate`.

        Parameters
        ----------
        initializer : callable
            The aggregate before the first record of a key.
        aggregator : callable
            `(key, value, aggregate) -> aggregate`; None deletes. It may change the aggregate in place.
        value : type or Serde, optional
            Type of the aggregate, where the return annotation of the aggregator or initializer does not say.
        **fields : expression
            Instead of functions: the result has these fields, as `flights=ks.len()`; `value=` may give its type.

        Raises
        ------
        TopologyError
            When both or neither are given.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> words = StreamsBuilder().stream("words", key=str, value=str)
        >>> letters = words.group_by_key().aggregate(int, lambda key, word, letters: letters + len(word))
        """
        aggregation = fold_or_expressions(initializer, aggregator, fields)
        return self._aggregate(aggregation, "AGGREGATE", key, value, materialized, name)

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...
    @overload
    def windowed_by(self, windows: TimeWindows | SlidingWindows | UnlimitedWindows) -> TimeWindowedKStream[K, V]: ...
    @overload
    def windowed_by(self, windows: Windows) -> WindowedKStream[K, V]: ...
    def windowed_by(self, windows: Windows) -> WindowedKStream[K, V]:
        """Aggregate by windows of event time. Kafka Streams: `windowedBy`.

        Parameters
        ----------
        windows : TimeWindows, SlidingWindows, SessionWindows, UnlimitedWindows
            Or windows of a kind of your own (see `kstreams.dsl.window_kinds`).

        Raises
        ------
        TopologyError
            For windows that cannot be aggregated.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> per_hour = clicks.windowed_by(ks.TimeWindows(size=3_600_000)).count()
        >>> visits = clicks.windowed_by(ks.SessionWindows(gap=1_800_000)).count()
        """
        handle = SessionWindowedKStream if window_kind(windows).merges else TimeWindowedKStream
        windowed: WindowedKStream[K, V] = handle(self, windows)
        return windowed

    def cogroup(self, aggregator: Callable[[K, V, A], A | None]) -> CogroupedKStream[K, A]:
        """Aggregate this stream together with others that are grouped by the same key. Kafka Streams: `cogroup`.

        Parameters
        ----------
        aggregator : callable
            `(key, value, aggregate) -> aggregate` for the records of this stream; None deletes.
        """
        return CogroupedKStream({self: aggregator})

    def top_n(
        self,
        n: int,
        by: Callable[[V], Any],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, list[V]]:
        """The `n` values of each key with the highest score so far, best first; of equal ones the earlier.

        In Kafka Streams one writes an aggregation into a sorted collection.

        Parameters
        ----------
        n : int
        by : callable
            Of a value; gives its score, anything that can be compared.
        value : type, optional
            Of the values, where it is not known.

        Raises
        ------
        TopologyError
            When the type of the values is not known, or `n` is not positive.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> games = StreamsBuilder().stream("games", key=str, value=int)
        >>> best = games.group_by_key().top_n(3, by=lambda points: points)
        """
        value_type = types_of(self._graph, self._node).value.or_declared(self._grouped.value, self._node)
        kind = list_type(value_type.or_declared(value, self._node), n)
        return self.aggregate(list, best_of(n, by), key=key, value=kind, materialized=materialized, name=name)

    def _aggregate(
        self,
        aggregation: Aggregation,
        kind: str,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        materialization = Materialized.of(materialized)
        described = (materialized, key, value) != (None, None, None)
        store = self._store_name(kind, materialization, burns=described and isinstance(aggregation, Count))
        node = StreamAggregate(
            aggregation=aggregation,
            store=store,
            grouped=self._grouped,
            key=key,
            value=value,
            materialized=materialization,
        )
        return self._add_aggregate(node, kind, store, name)

    def _store_name(self, kind: str, materialization: Materialized, *, burns: bool) -> str:
        """The store's name; a count that is described but not named takes one number more, as in Kafka Streams."""
        if materialization.name is not None:
            return materialization.name
        if burns:
            self._graph.names.next("KSTREAM-AGGREGATE-STATE-STORE-")
        return self._graph.names.next(f"KSTREAM-{kind}-STATE-STORE-")

    def _add_aggregate(self, node: Any, kind: str, store: str, name: str | None) -> KTable[Any, Any]:
        """Add an aggregation, after a repartition if a key was changed."""
        name = self._graph.names.given_or_next(name, f"KSTREAM-{kind}-")
        parent = self._placed(store, self)
        return self._graph.table(self._graph.add(node, name, (parent.name,)))

    def _placed(self, store: str, owner: object) -> Node:
        if not self._graph.repartition_required(self._node):
            return self._node
        return repartitioned(self._graph, self._node, self._topic_prefix or store, self._grouped, owner=owner)
