"""`KTable`: a table of the latest value per key, and its changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from kstreams.dsl.graph import (
    Declared,
    Grouped,
    ProcessValues,
    SelectKey,
    Suppress,
    TableGroupBy,
    ToStream,
    Typing,
)
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.streams.kstream import KStream
from kstreams.dsl.sugar.expiry import Expiry
from kstreams.dsl.sugar.known_types import known, types_of
from kstreams.dsl.tables.grouped_table import KGroupedTable
from kstreams.dsl.tables.suppressed import Suppressed
from kstreams.dsl.tables.table_joins import TableJoins
from kstreams.dsl.tables.table_views import TableViews
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at
from kstreams.serdes import serde_of

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


class KTable(TableViews[K, V], TableJoins[K, V]):
    """A table that changes with every record. Kafka Streams: `KTable`.

    A view (`filter`, `map_values`) keeps nothing unless a store is named by `materialized=`.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> users = StreamsBuilder().table("users", key=str, value=str, materialized="users")
    >>> users.filter(lambda key, name: name != "").to_stream().to("named-users")
    """

    __slots__ = ()

    @property
    def queryable_store_name(self) -> str | None:
        """The name of its store, if the user gave one."""
        materialized: Materialized = self._node.materialized  # type: ignore[attr-defined]  # every table node has it
        return materialized.name

    @overload
    def group_by(
        self,
        function: Callable[[K, V], Any] | tuple[Expr, Expr],
        *,
        key: Declared[K2],
        value: Declared[V2],
        name: str | None = None,
    ) -> KGroupedTable[K2, V2]: ...
    @overload
    def group_by(
        self,
        function: Callable[[K, V], tuple[K2, V2]] | tuple[Expr[K2], Expr[V2]],
        *,
        key: Typing = None,
        value: None = None,
        name: str | None = None,
    ) -> KGroupedTable[K2, V2]: ...
    @overload
    def group_by(
        self,
        function: Callable[[K, V], tuple[K2, Any]] | tuple[Expr[K2], Expr],
        *,
        key: None = None,
        value: Declared[V2],
        name: str | None = None,
    ) -> KGroupedTable[K2, V2]: ...
    def group_by(
        self,
        function: Callable[[K, V], tuple[Any, Any]] | tuple[Expr, Expr],
        *,
        key: Typing = None,
        value: Typing = None,
        name: str | None = None,
    ) -> KGroupedTable[Any, Any]:
        """Group the rows by another key: `function(key, value) -> (key, value)`. Kafka Streams: `groupBy`.

        Parameters
        ----------
        function : callable or pair of expressions
            A row for which the new key or value is None belongs to no group.
        key, value : type or Serde, optional
            Where the function's return annotation does not say.
        name : str, optional
            Names the operator and the repartition topic.

        Examples
        --------
        >>> import kstreams as ks
        >>> cities = ks.StreamsBuilder().table("city-of-user", key=str, value=str)
        >>> users_per_city = cities.group_by(lambda user, city: (city, user), key=str, value=str).count()
        >>> the_same = cities.group_by((ks.value, ks.key)).count()
        """
        node = TableGroupBy(function=function, grouped=Grouped(key=key, value=value))
        return KGroupedTable(self._graph, self._then(node, "KTABLE-SELECT-", name), name)

    @overload
    def to_stream(self, *, name: str | None = None) -> KStream[K, V]: ...
    @overload
    def to_stream(
        self, selector: Callable[[K, V], Any] | Expr, *, key: Declared[K2], name: str | None = None
    ) -> KStream[K2, V]: ...
    @overload
    def to_stream(
        self, selector: Callable[[K, V], K2] | Expr[K2], *, key: None = None, name: str | None = None
    ) -> KStream[K2, V]: ...
    def to_stream(
        self,
        selector: Callable[[K, V], Any] | Expr | None = None,
        *,
        key: Typing = None,
        name: str | None = None,
    ) -> KStream[Any, V]:
        """The changes as records. Kafka Streams: `toStream([mapper])`.

        Parameters
        ----------
        selector : callable, optional
            `(key, value) -> new key`, as a `select_key` after it.

        Examples
        --------
        >>> import kstreams as ks
        >>> counts = ks.StreamsBuilder().stream("clicks", key=str, value=str).group_by_key().count()
        >>> counts.to_stream().to("counts")
        """
        stream: KStream[Any, V] = KStream(self._graph, self._then(ToStream(), "KTABLE-TOSTREAM-", name))
        if selector is None:
            return stream
        return KStream(self._graph, stream._then(SelectKey(function=selector, key=key), "KSTREAM-KEY-SELECT-", None))

    def expire(
        self,
        after: Duration,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """The table without the rows that were not updated for a time: they are deleted as stream time goes on.

        In Kafka Streams one writes a processor with a store of times and a punctuator. A row expires `after` its last
        update, at that event time; one that comes later than that is deleted at once. For expiry by the wall clock too,
        when no records come, give the source `idle=`.

        Parameters
        ----------
        after : timedelta or int (ms)
            Time to live, at least 1 ms.
        key, value : type or Serde, optional
            Where they are not known.
        name : str, optional
            Names the operator, and starts the names of its stores.

        Raises
        ------
        TopologyError
            When the type of the key is not known, or `after` is not positive.

        Examples
        --------
        >>> from datetime import timedelta
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> sessions = StreamsBuilder().table("sessions", key=str, value=str)
        >>> live = sessions.expire(after=timedelta(minutes=30))
        """
        after_ms = to_ms(after)
        types = types_of(self._graph, self._node)
        if after_ms < 1:
            raise TopologyError(f"expire() at {declared_at()} needs a time of at least 1 ms, not {after_ms} ms")
        serde = serde_of(known(types.key.or_declared(key, self._node), "key", "expire()"))
        changes = self.to_stream()
        name = self._graph.names.given_or_next(name, "KTABLE-EXPIRE-")
        node = ProcessValues(supplier=Expiry(f"{name}-store", after_ms, serde), value=value or types.value.kind)
        expired: KStream[K, V] = KStream(self._graph, self._graph.add(node, name, (changes._node.name,)))
        return expired.to_table(key=serde, value=value, materialized=materialized)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Hold updates back: until their window closes, or for a time. Kafka Streams: `suppress`.

        Nothing leaves while no newer record comes: time is that of the records.

        Parameters
        ----------
        suppressed : Suppressed
            Until when, and how much may wait.

        Raises
        ------
        TopologyError
            When it is no Suppressed; when the topology is built, also if the table has a history, or no windows that
            could close.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> from kstreams.windows import TimeWindows
        >>> clicks = StreamsBuilder().stream("clicks", key=str, value=str).group_by_key()
        >>> hourly = clicks.windowed_by(TimeWindows(size=3_600_000)).count()
        >>> final = hourly.suppress(Suppressed.until_window_closes())
        """
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(
                f"suppress() at {declared_at()} takes Suppressed.until_window_closes() or .until_time_limit(...), "
                f"not {suppressed!r}"
            )
        names = self._graph.names
        name = suppressed.name or names.next("KTABLE-SUPPRESS-")
        store = f"{suppressed.name}-store" if suppressed.name else names.next("KTABLE-SUPPRESS-STATE-STORE-")
        node = Suppress(suppressed=suppressed, store=store)
        return KTable(self._graph, self._graph.add(node, name, (self._node.name,)))
