"""`KTable`: a table of the latest value of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

from kstreams.dsl.graph import (
    Declared,
    Grouped,
    ProcessValues,
    SelectKey,
    Suppress,
    TableFilter,
    TableGroupBy,
    TableMapValues,
    ToStream,
    Typing,
)
from kstreams.dsl.graph.table_joins import Partitioner
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.handle import Handle
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.streams.kstream import KStream
from kstreams.dsl.sugar.known_types import known, types_of
from kstreams.dsl.tables.grouped_table import KGroupedTable
from kstreams.dsl.tables.joining_tables import ForeignKey, TableJoinOptions, join_tables
from kstreams.dsl.tables.suppressed import Suppressed
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at
from kstreams.processor.api.contexts import FixedKeyProcessorContext
from kstreams.processor.api.processor import FixedKeyProcessor, check_supplier, store_names
from kstreams.processor.api.punctuation import NEVER, PunctuationType
from kstreams.record import FixedKeyRecord
from kstreams.serdes import Serde, serde_of
from kstreams.state.api import StoreBuilder
from kstreams.state.stores import Stores


@dataclass(frozen=True, slots=True)
class Expiry:
    """Supplies the processors of `expire`, and their stores: the last update of each key, and the keys by this time.

    Parameters
    ----------
    store : str
        Prefix of the names of both stores.
    after_ms : int
    serde : Serde
        Serde of the keys.
    """

    store: str
    after_ms: int
    serde: Serde

    def stores(self) -> tuple[StoreBuilder, StoreBuilder]:
        """Return the store of times by key, and the store of keys by time."""
        updated = Stores.key_value(self.store, key=self.serde, value=int)
        retention = 2 * self.after_ms + 1
        return updated, Stores.window(f"{self.store}-times", retention, size=1, key=self.serde, value=bytes)

    def __call__(self) -> FixedKeyProcessor:
        return _Expire(self)


class _Expire(FixedKeyProcessor):
    """Forwards updates, and deletions of expired rows, in order of time."""

    def __init__(self, settings: Expiry) -> None:
        self._settings = settings
        self._next_ms = 0  # no key expires before this stream time

    def init(self, context: FixedKeyProcessorContext) -> None:
        self._context = context
        self._updated = context.get_state_store(self._settings.store)
        self._by_time = context.get_state_store(f"{self._settings.store}-times")
        context.schedule(1, PunctuationType.STREAM_TIME, self._expire_until)

    def process(self, record: FixedKeyRecord) -> None:
        now_ms = self._context.current_stream_time_ms()
        self._expire_until(now_ms)
        expires_ms = record.timestamp + self._settings.after_ms
        if record.value is None or expires_ms <= now_ms:
            self._updated.delete(record.key)
            record = record.with_value(None)
        else:
            self._updated.put(record.key, record.timestamp)
            self._by_time.put(record.key, b"", record.timestamp)
            self._next_ms = min(self._next_ms, expires_ms)
        self._context.forward(record)

    def _expire_until(self, now_ms: int) -> None:
        if now_ms < self._next_ms:
            return
        after_ms = self._settings.after_ms
        due = list(self._by_time.started_between(0, now_ms - after_ms)) if now_ms >= after_ms else []
        for (key, (updated_ms, _)), _ in due:
            self._by_time.put(key, None, updated_ms)
            if self._updated.get(key) == updated_ms:
                self._updated.delete(key)
                self._context.forward(FixedKeyRecord(key=key, value=None, timestamp=updated_ms + after_ms))
        first = next(iter(self._by_time.started_between(0, NEVER // 2)), None)
        self._next_ms = NEVER if first is None else first[0][1][0] + after_ms


K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")
K2 = TypeVar("K2")
VO = TypeVar("VO")
VR = TypeVar("VR")


class KTable(Handle, Generic[K, V]):
    """A table that each record changes. Kafka Streams: `KTable`.

    A view (`filter`, `map_values`) has no store unless `materialized=` names one.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> users = StreamsBuilder().table("users", key=str, value=str, materialized="users")
    >>> users.filter(lambda key, name: name != "").to_stream().to("named-users")
    """

    __slots__ = ()

    def filter(
        self,
        predicate: Callable[[K, V], Any] | Expr,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keep the rows for which `predicate(key, value)` is true, and delete others. Kafka Streams: `filter`.

        Examples
        --------
        >>> import kstreams as ks
        >>> users = ks.StreamsBuilder().table("users", key=str, value=str)
        >>> known = users.filter(lambda user, name: name != "", materialized="known-users")
        """
        return self._filter(False, predicate, key, value, materialized, name)

    def filter_not(
        self,
        predicate: Callable[[K, V], Any] | Expr,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keep the rows for which `predicate(key, value)` is false, and delete others. Kafka Streams: `filterNot`.

        Examples
        --------
        >>> import kstreams as ks
        >>> users = ks.StreamsBuilder().table("users", key=str, value=str)
        >>> known = users.filter_not(ks.value == "")
        """
        return self._filter(True, predicate, key, value, materialized, name)

    @overload
    def map_values(
        self,
        function: Callable[[V], Any] | Expr,
        *,
        with_key: Literal[False] = False,
        key: Typing = None,
        value: Declared[V2],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[V], V2 | None] | Expr[V2],
        *,
        with_key: Literal[False] = False,
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[K, V], Any],
        *,
        with_key: Literal[True],
        key: Typing = None,
        value: Declared[V2],
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V2]: ...

    @overload
    def map_values(
        self,
        function: Callable[[K, V], V2 | None],
        *,
        with_key: Literal[True],
        key: Typing = None,
        value: None = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V2]: ...

    def map_values(
        self,
        function: Callable[..., Any] | Expr,
        *,
        with_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, Any]:
        """Set a new value for each row: `function(value)`; deletions remain deletions. Kafka Streams: `mapValues`.

        Parameters
        ----------
        function : callable or expression
            `value -> new value`; with `with_key=True`, `(key, value) -> new value`. Never called with None.

        Examples
        --------
        >>> import kstreams as ks
        >>> users = ks.StreamsBuilder().table("users", key=str, value=str)
        >>> lengths = users.map_values(len, value=int, materialized="lengths")
        """
        materialization = self._view_store("KTABLE-MAPVALUES-", key, value, materialized)
        node = TableMapValues(function=function, with_key=with_key, key=key, value=value, materialized=materialization)
        return self._graph.table(self._add_node(node, "KTABLE-MAPVALUES-", name))

    def transform_values(
        self,
        supplier: Callable[[], FixedKeyProcessor[K, V, V2]],
        *,
        stores: Iterable[str] = (),
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V2]:
        """Set the value of each row by a processor of your own. Kafka Streams: `transformValues`.

        The processor takes every update, also deletions (with the value None). The row gets the last value that it
        forwards; a row for which it forwards nothing, or None, is deleted. Punctuators cannot forward.

        Parameters
        ----------
        supplier : callable
            Returns a new processor at each call: a class or a function.
        stores : iterable of str
            Names of the state stores that it uses, added by `StreamsBuilder.add_state_store`.
        key, value : type or Serde, optional
            Types of the new rows.
        materialized : str or Materialized, optional
            Names the store of the result. Without a store, old values and looked-up rows are transformed again.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> class Length(FixedKeyProcessor):
        ...     def init(self, context):
        ...         self.context = context
        ...
        ...     def process(self, record):
        ...         self.context.forward(record.with_value(len(record.value or "")))
        >>> lengths = StreamsBuilder().table("words", key=str, value=str).transform_values(Length, value=int)
        """
        place = f"transform_values() at {declared_at()}"
        check_supplier(supplier, FixedKeyProcessor, place)
        node = TableTransformValues(
            supplier=supplier,
            stores=store_names(stores, place),
            key=key,
            value=value,
            materialized=Materialized.of(materialized, history=True),
        )
        return self._graph.table(self._add_node(node, "KTABLE-TRANSFORMVALUES-", name))

    def _filter(
        self,
        negate: bool,
        predicate: Callable[[K, V], Any] | Expr,
        key: Typing,
        value: Typing,
        materialized: str | Materialized | None,
        name: str | None,
    ) -> KTable[K, V]:
        materialization = self._view_store("KTABLE-FILTER-", key, value, materialized)
        node = TableFilter(predicate=predicate, negate=negate, key=key, value=value, materialized=materialization)
        return self._graph.table(self._add_node(node, "KTABLE-FILTER-", name))

    def _view_store(
        self, prefix: str, key: Typing, value: Typing, materialized: str | Materialized | None
    ) -> Materialized:
        """Return the settings of the store of a view. As in Kafka Streams, a store without a name takes a number."""
        materialization = Materialized.of(materialized, history=True)
        if materialization.name is None and (materialized, key, value) != (None, None, None):
            self._graph.names.next(f"{prefix}STATE-STORE-")
        return materialization

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
            Returns the new key and value; if one of them is None, the row belongs to no group.
        key, value : type or Serde, optional
            Types of the new key and value, if the function has no return annotation.
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
        return KGroupedTable(self._graph, self._add_node(node, "KTABLE-SELECT-", name), name)

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
        """Read the changes as a stream of records. Kafka Streams: `toStream([mapper])`.

        Parameters
        ----------
        selector : callable, optional
            `(key, value) -> new key`, as by `select_key`.

        Examples
        --------
        >>> import kstreams as ks
        >>> counts = ks.StreamsBuilder().stream("clicks", key=str, value=str).group_by_key().count()
        >>> counts.to_stream().to("counts")
        """
        stream: KStream[Any, V] = KStream(self._graph, self._add_node(ToStream(), "KTABLE-TOSTREAM-", name))
        if selector is None:
            return stream
        return KStream(
            self._graph, stream._add_node(SelectKey(function=selector, key=key), "KSTREAM-KEY-SELECT-", None)
        )

    def expire(
        self,
        after: Duration,
        *,
        key: Typing = None,
        value: Typing = None,
        materialized: str | Materialized | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Delete rows that were not updated for a time, as stream time advances.

        In Kafka Streams, one writes a processor with a store of times and a punctuator. A row expires `after` its last
        update, in event time; an update that is already expired deletes the row. To expire rows while no records
        arrive, set `idle=` of the source.

        Parameters
        ----------
        after : timedelta or int (ms)
            Time to live, at least 1 ms.
        key, value : type or Serde, optional
            Types of the key and value, if they are not known.
        name : str, optional
            Names the operator; also the prefix of the names of its stores.

        Raises
        ------
        TopologyError
            If the type of the key is not known, or `after` is not positive.

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
        """Hold updates back until their window closes, or for a time. Kafka Streams: `suppress`.

        Time is stream time: updates are emitted only when newer records arrive.

        Parameters
        ----------
        suppressed : Suppressed
            How long updates are held back, and the limits of the buffer.

        Raises
        ------
        TopologyError
            If `suppressed` is no Suppressed. `build()` also raises it if the table is versioned, or has no windows that
            close.

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
        """Join the rows with the same key in both tables: `joiner(left, right)`. Kafka Streams: `join`.

        Each update of a table updates the result, at the later time of both rows. Both tables need equal numbers of
        partitions, except in a join by foreign key. This join sends subscriptions and responses through two internal
        topics: results are eventually consistent, and a row may be emitted twice.

        Parameters
        ----------
        other : KTable
        joiner : callable or expression
            `joiner(left, right)`; None deletes. In an expression, `ks.left.value` and `ks.right.value` are the rows.
        foreign_key : callable or expression, optional
            `foreign_key(left)`, or with `with_key=True` `foreign_key(key, left)`: returns a key of the other table, or
            None. Without it, the tables are joined by their own keys.
        key, value : type or Serde, optional
            Types of the result, if they are not known. Without `foreign_key`, they give the result its own store.
        materialized : str or Materialized, optional
            Names the store; without a store, the result is looked up in both tables.
        partitioner, other_partitioner : callable, optional
            With `foreign_key`: `(topic, key, None, number of partitions) -> partition` for this and the other table, if
            they are not partitioned by their keys (Kafka Streams: `TableJoined`).
        name : str, optional
            Names the operator, and the topics of a join by foreign key.

        Raises
        ------
        TopologyError
            If there are options of a join by foreign key, but no `foreign_key`.

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
        """Join like `join`, and keep unmatched rows of this table: `joiner(left, None)`. Kafka Streams: `leftJoin`.

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
        """Join like `left_join`, and keep unmatched other rows: `joiner(None, right)`. Kafka Streams: `outerJoin`.

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
