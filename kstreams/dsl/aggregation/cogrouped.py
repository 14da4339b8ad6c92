"""`CogroupedKStream`: several streams grouped by the same key, to be aggregated together."""

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

Aggregator = Callable[[Any, Any, Any], Any]


class CogroupedKStream(SuggestsNames, Generic[K, A]):
    """What `KGroupedStream.cogroup` gives: streams, each with an aggregator of its own.

    Kafka Streams: `CogroupedKStream`.

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
            For windows that cannot be aggregated.
        """
        merges = window_kind(windows).merges
        handle = SessionWindowedCogroupedKStream if merges else TimeWindowedCogroupedKStream
        return handle(self, windows)

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        *,
        key: Typing = None,
        value: Declared[B],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, B]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], B],
        *,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, B]: ...
    def aggregate(
        self,
        initializer: Callable[[], Any],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, Any]:
        """Aggregate all streams into one table. Records with a null key or value are dropped.

        Kafka Streams: `CogroupedKStream.aggregate`.

        Parameters
        ----------
        initializer : callable
            The aggregate before the first record of a key.
        value : type or Serde, optional
            Type of the aggregate, where no return annotation says it.
        name : str, optional
            Names the operators.
        """
        return self._aggregated(Cogroup, name, Materialized.of(materialized), initializer, key=key, value=value)

    def _aggregated(
        self,
        node: type[Cogroup],
        name: str | None,
        materialization: Materialized,
        initializer: Callable[[], Any],
        **settings: Any,
    ) -> KTable[Any, Any]:
        """Add the node: Kafka Streams names the store, the repartitions, the steps and the table, in this order."""
        name = None if name is None else validate_name(name)
        graph = next(iter(self._inputs))._graph
        store = materialization.name or graph.names.next("COGROUPKSTREAM-AGGREGATE-STATE-STORE-")
        parents = tuple(grouped._placed(store, (self, grouped)).name for grouped in self._inputs)
        inputs = tuple(
            CogroupedInput(
                graph.names.given_or_next(name and f"{name}-cogroup-agg-{i}", "COGROUPKSTREAM-AGGREGATE-"),
                grouped._grouped,
                aggregator,
            )
            for i, (grouped, aggregator) in enumerate(self._inputs.items())
        )
        table = graph.names.given_or_next(name and f"{name}-cogroup-merge", "COGROUPKSTREAM-MERGE-")
        aggregate = node(inputs=inputs, initializer=initializer, store=store, materialized=materialization, **settings)
        return graph.table(graph.add(aggregate, table, parents))


class TimeWindowedCogroupedKStream(SuggestsNames, Generic[K, A]):
    """What `CogroupedKStream.windowed_by` gives for windows of a fixed size.

    Kafka Streams: `TimeWindowedCogroupedKStream`.
    """

    __slots__ = ("_cogrouped", "_windows")

    def __init__(self, cogrouped: CogroupedKStream[K, A], windows: Windows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        *,
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
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], B]: ...
    def aggregate(
        self,
        initializer: Callable[[], Any],
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], Any]:
        """Aggregate all streams by key and window; as `CogroupedKStream.aggregate`."""
        materialization = checked_retention(materialized, self._windows)
        return self._cogrouped._aggregated(
            WindowedCogroup, name, materialization, initializer, key=key, value=value, windows=self._windows
        )


class SessionWindowedCogroupedKStream(SuggestsNames, Generic[K, A]):
    """What `CogroupedKStream.windowed_by` gives for sessions. Kafka Streams: `SessionWindowedCogroupedKStream`."""

    __slots__ = ("_cogrouped", "_windows")

    def __init__(self, cogrouped: CogroupedKStream[K, A], windows: Windows) -> None:
        self._cogrouped = cogrouped
        self._windows = windows

    @overload
    def aggregate(
        self,
        initializer: Callable[[], Any],
        *,
        merger: Callable[[K, Any, Any], Any],
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
        initializer: Callable[[], Any],
        *,
        merger: Callable[[K, Any, Any], Any],
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], Any]:
        """Aggregate all streams by key and session; as `CogroupedKStream.aggregate`.

        Parameters
        ----------
        merger : callable
            `(key, aggregate, aggregate) -> aggregate` of two sessions that become one; as
            `SessionWindowedKStream.aggregate`.
        """
        materialization = checked_retention(materialized, self._windows)
        settings = {"key": key, "value": value, "windows": self._windows, "merger": merger}
        return self._cogrouped._aggregated(WindowedCogroup, name, materialization, initializer, **settings)
