"""`CogroupedKStream`: streams grouped by the same key, to be aggregated into one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from kstreams.dsl.aggregation.windowed import checked_retention
from kstreams.dsl.graph.cogroups import Cogroup, CogroupedInput, WindowedCogroup
from kstreams.dsl.graph.node import Declared, Typing
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.naming import validate_name
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.dsl.window_kinds import window_kind
from kstreams.record import Windowed
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows, Windows

if TYPE_CHECKING:
    from kstreams.dsl.aggregation.grouped import KGroupedStream
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
B = TypeVar("B")
G = TypeVar("G")
"""The key of a group, and so of the table: the key of the records, or `Windowed` of it."""

Aggregator = Callable[[Any, Any, Any], Any]


class CogroupedAggregate(SuggestsNames, Generic[G]):
    """The aggregation of cogrouped streams whose groups never merge, as sessions do."""

    __slots__ = ()

    @overload
    def aggregate(
        self,
        initializer: Callable[[], object],
        *,
        key: Typing = None,
        value: Declared[B],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[G, B]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], B],
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[G, B]: ...
    def aggregate(
        self,
        initializer: Callable[[], object],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[G, Any]:
        """Aggregate all streams into one table. Records with a null key or value are dropped.

        Kafka Streams: `CogroupedKStream.aggregate`.

        Parameters
        ----------
        initializer : callable
            Returns the aggregate before the first record of a group.
        value : type or Serde, optional
            Type of the aggregate, if the initializer and the aggregators have no return annotation.
        name : str, optional
            Prefix of the names of the operators.
        """
        return self._aggregate(initializer, key=key, value=value, materialized=materialized, name=name)

    def _aggregate(
        self,
        initializer: Callable[[], object],
        *,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[G, Any]:
        """Add the node of the aggregation."""
        raise NotImplementedError


class CogroupedKStream(CogroupedAggregate[K], Generic[K, A]):
    """Streams grouped by the same key, each with its own aggregator. Kafka Streams: `CogroupedKStream`.

    `KGroupedStream.cogroup` returns it.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> builder = StreamsBuilder()
    >>> bought = builder.stream("bought", key=str, value=int).group_by_key()
    >>> given_back = builder.stream("given-back", key=str, value=int).group_by_key()
    >>> in_hand = (
    ...     bought.cogroup(lambda user, number, total: total + number)
    ...     .cogroup(given_back, lambda user, number, total: total - number)
    ...     .aggregate(int, value=int, materialized="in-hand")
    ... )
    """

    __slots__ = ("_inputs",)

    def __init__(self, inputs: Mapping[KGroupedStream[Any, Any], Aggregator]) -> None:
        self._inputs = dict(inputs)

    def cogroup(
        self, grouped: KGroupedStream[K, V], aggregator: Callable[[K, V, A], A | None]
    ) -> CogroupedKStream[K, A]:
        """Add another stream, grouped by the same key. Kafka Streams: `cogroup`.

        Parameters
        ----------
        aggregator : callable
            `(key, value, aggregate) -> aggregate` for the records of this stream; None deletes.
        """
        first = next(iter(self._inputs))
        first._meets(grouped, "cogroup", type(first))
        return CogroupedKStream({**self._inputs, grouped: aggregator})

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, A]: ...
    @overload
    def windowed_by(
        self, windows: TimeWindows | SlidingWindows | UnlimitedWindows
    ) -> TimeWindowedCogroupedKStream[K, A]: ...
    @overload
    def windowed_by(self, windows: Windows) -> Any: ...
    def windowed_by(self, windows: Windows) -> Any:
        """Aggregate by windows of event time, emitted on update. Kafka Streams: `windowedBy`.

        Raises
        ------
        TopologyError
            If the windows are of a kind that cannot be aggregated.
        """
        window_kind(windows)  # raises an error for windows of an unknown kind
        handle = SessionWindowedCogroupedKStream if windows.merges else TimeWindowedCogroupedKStream
        return handle(self, windows)

    def _aggregate(
        self,
        initializer: Callable[[], object],
        *,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[K, Any]:
        materialization = Materialized.of(materialized)
        return self._add(Cogroup, name, materialization, initializer=initializer, key=key, value=value)

    def _add(
        self, node_type: type[Cogroup], name: str | None, materialization: Materialized, **settings: Any
    ) -> KTable[Any, Any]:
        """Add the node: Kafka Streams names the store, the repartitions, the steps and the table, in this order."""
        name = None if name is None else validate_name(name)
        graph = next(iter(self._inputs))._graph
        store = materialization.name or graph.names.next("COGROUPKSTREAM-AGGREGATE-STATE-STORE-")
        parents = tuple(grouped._repartitioned_by_key(store, (self, grouped)).name for grouped in self._inputs)
        inputs = tuple(
            CogroupedInput(
                graph.names.given_or_next(name and f"{name}-cogroup-agg-{i}", "COGROUPKSTREAM-AGGREGATE-"),
                grouped._grouped,
                aggregator,
            )
            for i, (grouped, aggregator) in enumerate(self._inputs.items())
        )
        table = graph.names.given_or_next(name and f"{name}-cogroup-merge", "COGROUPKSTREAM-MERGE-")
        aggregate = node_type(inputs=inputs, store=store, materialized=materialization, **settings)
        return graph.table(graph.add(aggregate, table, parents))


class WindowedCogroupedKStream(SuggestsNames, Generic[K, A]):
    """Streams grouped by the same key and by window."""

    __slots__ = ("_cogrouped", "_windows")

    def __init__(self, cogrouped: CogroupedKStream[K, A], windows: Windows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows


class TimeWindowedCogroupedKStream(WindowedCogroupedKStream[K, A], CogroupedAggregate[Windowed[K]]):
    """Streams grouped by the same key and by window; `windowed_by` returns it for windows that never merge.

    Kafka Streams: `TimeWindowedCogroupedKStream`.
    """

    __slots__ = ()

    def _aggregate(
        self,
        initializer: Callable[[], object],
        *,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[Windowed[K], Any]:
        materialization = checked_retention(materialized, self._windows)
        return self._cogrouped._add(
            WindowedCogroup, name, materialization, initializer=initializer, key=key, value=value, windows=self._windows
        )


class SessionWindowedCogroupedKStream(WindowedCogroupedKStream[K, A]):
    """Streams grouped by the same key and by session. Kafka Streams: `SessionWindowedCogroupedKStream`."""

    __slots__ = ()

    @overload
    def aggregate(
        self,
        initializer: Callable[[], object],
        *,
        merger: Callable[[K, Any, Any], object],
        key: Typing = None,
        value: Declared[B],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], B]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], B],
        *,
        merger: Callable[[K, B, B], B],
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], B]: ...
    def aggregate(
        self,
        initializer: Callable[[], object],
        *,
        merger: Callable[[K, Any, Any], object],
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], Any]:
        """Aggregate all streams by key and session; see `CogroupedKStream.aggregate`.

        Parameters
        ----------
        merger : callable
            `(key, aggregate, aggregate) -> aggregate` for two sessions that become one; see
            `SessionWindowedKStream.aggregate`.
        """
        return self._cogrouped._add(
            WindowedCogroup,
            name,
            checked_retention(materialized, self._windows),
            initializer=initializer,
            key=key,
            value=value,
            windows=self._windows,
            merger=merger,
        )
