"""The joins of a stream: with another stream in windows, with a table, or with a global table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from kstreams.dsl.graph import Grouped, Node, Repartition, Typing
from kstreams.dsl.handle import Handle, repartitioned
from kstreams.dsl.streams.joining import Joined, join_global_table, join_streams, join_table, refuse_options
from kstreams.dsl.tables.global_ktable import GlobalKTable
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration
from kstreams.windows import JoinWindows

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream
    from kstreams.dsl.tables.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")
VR = TypeVar("VR")


class JoinOptions(TypedDict, total=False):
    """Options of every join; see `join`."""

    windows: JoinWindows | None
    key: Typing
    value: Typing
    other_value: Typing
    name: str | None
    store_name: str | None


class LookupOptions(JoinOptions, total=False):
    """Options of a join that may look into a table."""

    grace: Duration | None


class StreamJoins(Handle, Generic[K, V]):
    """The joins of `KStream`."""

    __slots__ = ()

    @overload
    def join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[V, VO], VR] | Expr[VR],
        *,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[V, VO], VR] | Expr[VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, KO, V, VO], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_mapped_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    def join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joiner: Callable[..., Any] | Expr,
        *,
        windows: JoinWindows | None = None,
        key_selector: Callable[[K, V], Any] | Expr | None = None,
        with_key: bool = False,
        with_mapped_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
        grace: Duration | None = None,
    ) -> KStream[K, Any]:
        """Join with what has a partner, `joiner(left, right)`: a stream in windows, or a table's row of the same key.

        Kafka Streams: `join`. Sides whose key was changed are repartitioned first, but for a global table.

        Parameters
        ----------
        other : KStream, KTable or GlobalKTable
            Of a stream, each pair of records that `windows` lets meet is joined once; a table is looked up as it is
            when a record of this stream comes.
        joiner : callable or expression
            Of both values; with `with_key=True`, of key and both values. In an expression `ks.left.value`
            and `ks.right.value` are the values, `ks.left.col("price")` is a field of one.
        windows : JoinWindows
            For a stream: which records meet.
        key_selector : callable or expression
            For a global table: `(key, value) -> key of the table`.
        with_mapped_key : bool
            For a global table: whether the joiner takes `(key, mapped_key, left, right)`, where `mapped_key` is what
            `key_selector` gave. Kafka Streams: `ValueJoinerWithStreamAndMappedKey`.
        value : type or Serde, optional
            Of the result, where the return annotation of the joiner does not say it; also of this side's values, where
            nothing else does.
        key, other_value : type or Serde, optional
            Of the keys and the other side's values, where they are not known; not for a global table.
        name : str, optional
            Names the operator and the repartition topics.
        store_name : str, optional
            For a stream: names the stores.
        grace : timedelta or int (ms), optional
            For a versioned table: how long, in stream time, records wait for versions of the table that come late.
            They are then joined in order of time. At most the table's history retention.

        Raises
        ------
        TopologyError
            When `windows` or `key_selector` is missing, or given for another kind of join; when `grace` is given for a
            table without enough history.

        Examples
        --------
        >>> from kstreams.dsl.builder import StreamsBuilder
        >>> builder = StreamsBuilder()
        >>> orders = builder.stream("orders", key=str, value=str)
        >>> payments = builder.stream("payments", key=str, value=str)
        >>> paid = orders.join(payments, lambda order, payment: f"{order}: {payment}", windows=JoinWindows.of(60_000))
        """
        joined = Joined(
            joiner,
            with_key,
            key,
            value,
            other_value,
            name,
            store_name=store_name,
            grace=grace,
            with_mapped_key=with_mapped_key,
        )
        return self._join(other, joined, windows, key_selector, left_outer=False)

    @overload
    def left_join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[V, VO | None], VR] | Expr[VR],
        *,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KStream[K, VO] | KTable[K, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[V, VO | None], VR] | Expr[VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[False] = False,
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[KO, VO],
        joiner: Callable[[K, KO, V, VO | None], VR],
        *,
        key_selector: Callable[[K, V], KO | None] | Expr,
        with_mapped_key: Literal[True],
        **options: Unpack[LookupOptions],
    ) -> KStream[K, VR]: ...
    def left_join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joiner: Callable[..., Any] | Expr,
        *,
        windows: JoinWindows | None = None,
        key_selector: Callable[[K, V], Any] | Expr | None = None,
        with_key: bool = False,
        with_mapped_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
        grace: Duration | None = None,
    ) -> KStream[K, Any]:
        """The same as `join`, and records of this side without a partner too: `joiner(left, None)`.

        Kafka Streams: `leftJoin`. In a join of streams such a record comes out once stream time has passed its window
        and the grace of `windows`. Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> orders = builder.stream("orders", key=str, value=str)
        >>> names = builder.table("names", key=str, value=str)
        >>> named = orders.left_join(names, lambda order, name: f"{order} of {name or 'somebody'}")
        """
        joined = Joined(
            joiner,
            with_key,
            key,
            value,
            other_value,
            name,
            store_name=store_name,
            grace=grace,
            with_mapped_key=with_mapped_key,
        )
        return self._join(other, joined, windows, key_selector, left_outer=True)

    @overload
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V | None, VO | None], VR] | Expr[VR],
        *,
        with_key: Literal[False] = False,
        **options: Unpack[JoinOptions],
    ) -> KStream[K, VR]: ...
    @overload
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[K, V | None, VO | None], VR],
        *,
        with_key: Literal[True],
        **options: Unpack[JoinOptions],
    ) -> KStream[K, VR]: ...
    def outer_join(
        self,
        other: KStream[K, Any],
        joiner: Callable[..., Any] | Expr,
        *,
        windows: JoinWindows | None = None,
        with_key: bool = False,
        key: Typing = None,
        value: Typing = None,
        other_value: Typing = None,
        name: str | None = None,
        store_name: str | None = None,
    ) -> KStream[K, Any]:
        """The same as `left_join` of streams, and records of the other side without a partner: `joiner(None, right)`.

        Kafka Streams: `outerJoin`. Parameters as for `join`.

        Examples
        --------
        >>> import kstreams as ks
        >>> builder = ks.StreamsBuilder()
        >>> left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
        >>> both = left.outer_join(right, lambda a, b: f"{a} {b}", windows=ks.JoinWindows.of(100, grace=50))
        """
        joined = Joined(joiner, with_key, key, value, other_value, name, store_name)
        self._meets(other, "outer_join", self._graph.handles.stream)
        return self._graph.stream(join_streams(self, other, windows, joined, left_outer=True, right_outer=True))

    def _join(
        self,
        other: KStream[K, Any] | KTable[K, Any] | GlobalKTable[Any, Any],
        joined: Joined,
        windows: JoinWindows | None,
        key_selector: Callable[[K, V], Any] | Expr | None,
        *,
        left_outer: bool,
    ) -> KStream[K, Any]:
        handles = self._graph.handles
        self._meets(other, "left_join" if left_outer else "join", handles.stream, handles.table, GlobalKTable)
        refuse_options(other, windows=windows, key_selector=key_selector, joined=joined)
        node: Node
        if isinstance(other, handles.stream):
            node = join_streams(self, other, windows, joined, left_outer=left_outer, right_outer=False)
        elif isinstance(other, GlobalKTable):
            node = join_global_table(self, other, key_selector, joined, left=left_outer)
        else:
            assert isinstance(other, handles.table)
            node = join_table(self, other, joined, left=left_outer)
        return self._graph.stream(node)

    def _placed(self, prefix: str, grouped: Grouped) -> Node:
        """This stream, repartitioned if a key was changed; `prefix` names the topic."""
        required = self._graph.repartition_required(self._node)
        return self._repartitioned(prefix, grouped) if required else self._node

    def _repartitioned(self, prefix: str, grouped: Grouped, **settings: Any) -> Repartition:
        return repartitioned(self._graph, self._node, prefix, grouped, **settings)
