"""`KGroupedStream`: a stream grouped by key, ready to be aggregated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from kstreams.dsl.aggregation.cogrouped import CogroupedKStream
from kstreams.dsl.aggregation.methods import CountReduceAndAggregate
from kstreams.dsl.aggregation.windowed import SessionWindowedKStream, TimeWindowedKStream, WindowedKStream
from kstreams.dsl.graph import (
    Aggregation,
    Count,
    Grouped,
    Node,
    Reduce,
    StreamAggregate,
    Typing,
    WindowedAggregate,
)
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.handle import Handle, repartitioned
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import validate_name
from kstreams.dsl.sugar.known_types import types_of
from kstreams.dsl.sugar.ranking import best_of, list_type, score_of
from kstreams.dsl.window_kinds import window_kind
from kstreams.expressions import Expr
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class KGroupedStream(Handle, CountReduceAndAggregate[K, V, K]):
    """A stream grouped by key. Kafka Streams: `KGroupedStream`.

    `KStream.group_by` and `KStream.group_by_key` return it.

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
            Or windows of your own kind (see `kstreams.dsl.window_kinds`).

        Raises
        ------
        TopologyError
            If the windows are of a kind that cannot be aggregated.

        Examples
        --------
        >>> import kstreams as ks
        >>> clicks = ks.StreamsBuilder().stream("clicks", key=str, value=int).group_by_key()
        >>> per_hour = clicks.windowed_by(ks.TimeWindows(size=3_600_000)).count()
        >>> visits = clicks.windowed_by(ks.SessionWindows(gap=1_800_000)).count()
        """
        window_kind(windows)  # raises an error for windows of an unknown kind
        handle = SessionWindowedKStream if windows.merges else TimeWindowedKStream
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
        by: Callable[[V], Any] | Expr,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, list[V]]:
        """Return the `n` values of each key with the highest scores, best first; the earlier of equal ones first.

        In Kafka Streams, one writes an aggregation into a sorted collection.

        Parameters
        ----------
        n : int
        by : callable or expression
            `value -> score`; scores can be of any type with an order.
        value : type, optional
            Type of the values, if it is not declared before.

        Raises
        ------
        TopologyError
            If the type of the values is not known, or `n` is not positive.

        Examples
        --------
        >>> import kstreams as ks
        >>> games = ks.StreamsBuilder().stream("games", key=str, value=int)
        >>> best = games.group_by_key().top_n(3, by=ks.value)
        """
        grouped = types_of(self._graph, self._node).value.or_declared(self._grouped.value, self._node)
        value_type = grouped.or_declared(value, self._node)
        kind = list_type(value_type, n)
        add = best_of(n, score_of(by, value_type.python))
        return self.aggregate(list, add, key=key, value=kind, materialized=materialized, name=name)

    def _aggregate(
        self,
        aggregation: Aggregation,
        *,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[K, Any]:
        materialization = Materialized.of(materialized)
        described = (materialized, key, value) != (None, None, None)
        store = self._store_name(aggregation, materialization, skip_number=described and isinstance(aggregation, Count))
        node = StreamAggregate(
            aggregation=aggregation,
            store=store,
            grouped=self._grouped,
            key=key,
            value=value,
            materialized=materialization,
        )
        return self._add_aggregate(node, name)

    def _store_name(self, aggregation: Aggregation, materialization: Materialized, *, skip_number: bool) -> str:
        """Return the user's name of the store, or the next generated one.

        `skip_number` leaves one number out first, as Kafka Streams does if a count is described but not named.
        """
        if materialization.name is not None:
            return materialization.name
        if skip_number:
            self._graph.names.next("KSTREAM-AGGREGATE-STATE-STORE-")
        return self._graph.names.next(f"KSTREAM-{_kind(aggregation)}-STATE-STORE-")

    def _add_aggregate(self, node: StreamAggregate | WindowedAggregate, name: str | None) -> KTable[Any, Any]:
        """Add an aggregation, after a repartition if a key was changed."""
        name = self._graph.names.given_or_next(name, f"KSTREAM-{_kind(node.aggregation)}-")
        parent = self._repartitioned_by_key(node.store, self)
        return self._graph.table(self._graph.add(node, name, (parent.name,)))

    def _repartitioned_by_key(self, store: str, owner: object) -> Node:
        """Return the node to aggregate: a repartition after the grouped one if a key was changed."""
        if not self._graph.repartition_required(self._node):
            return self._node
        return repartitioned(self._graph, self._node, self._topic_prefix or store, self._grouped, owner=owner)


def _kind(aggregation: Aggregation) -> str:
    """Return the word for an aggregation in generated names."""
    return "REDUCE" if isinstance(aggregation, Reduce) else "AGGREGATE"
