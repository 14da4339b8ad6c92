"""The views of a table: its rows filtered, or with new values; they are kept only in a store that the user names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from kstreams.dsl.graph import Declared, TableFilter, TableMapValues, Typing
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.handle import Handle
from kstreams.dsl.materialized import Materialized
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at
from kstreams.processor.api.processor import FixedKeyProcessor, check_supplier, store_names

if TYPE_CHECKING:
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
V2 = TypeVar("V2")


class TableViews(Handle, Generic[K, V]):
    """The views of `KTable`."""

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
        """The rows for which `predicate(key, value)` holds; others are deleted. Kafka Streams: `filter`.

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
        """The rows for which `predicate(key, value)` does not hold. Kafka Streams: `filterNot`.

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
        """A new value for each row: `function(value)`; a deletion stays one. Kafka Streams: `mapValues`.

        Parameters
        ----------
        function : callable or expression
            Of the value; with `with_key=True`, of key and value. Never called with None.

        Examples
        --------
        >>> import kstreams as ks
        >>> users = ks.StreamsBuilder().table("users", key=str, value=str)
        >>> lengths = users.map_values(len, value=int, materialized="lengths")
        """
        materialization = self._view_store("KTABLE-MAPVALUES-", key, value, materialized)
        node = TableMapValues(function=function, with_key=with_key, key=key, value=value, materialized=materialization)
        return self._graph.table(self._then(node, "KTABLE-MAPVALUES-", name))

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
        """The value that a processor of your own forwards for each row. Kafka Streams: `transformValues`.

        The processor is called with every update, also with those that delete (their value is None). A row for which it
        forwards nothing, or None, is deleted; of several values the last counts. Punctuators cannot forward.

        Parameters
        ----------
        supplier : callable
            Makes the processor, a new one at each call: its class, or a function.
        stores : iterable of str
            Names of the state stores it uses; they were added by `StreamsBuilder.add_state_store`.
        key, value : type or Serde, optional
            Of the new rows.
        materialized : str or Materialized, optional
            Names the store of the result; without it old values, and rows that others look up, are transformed anew.

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
        return self._graph.table(self._then(node, "KTABLE-TRANSFORMVALUES-", name))

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
        return self._graph.table(self._then(node, "KTABLE-FILTER-", name))

    def _view_store(
        self, prefix: str, key: Typing, value: Typing, materialized: str | Materialized | None
    ) -> Materialized:
        """The store of a view. One that is described but not named is not made, yet takes a number."""
        materialization = Materialized.of(materialized, history=True)
        if materialization.name is None and (materialized, key, value) != (None, None, None):
            self._graph.names.next(f"{prefix}STATE-STORE-")
        return materialization
