"""Topologies out of the whole DSL, made at random from a seed: all values are orders, so that every step fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypedDict

import kstreams as ks
from kstreams.kernel.batch import Row

NUMBERS = [None, -3, 0, 1, 2, 7, 9, 2**53 + 1, 2**57, -(2**57)]
PRICES = [None, 0.1, 0.2, 0.7, -1e16, 1e16, 3.0, 0.0, -0.0]


class Order(TypedDict):
    shop: str | None
    amount: int | None
    price: float | None
    paid: bool | None


Stream = ks.KStream[Any, Any]
Table = ks.KTable[Any, Any]
amount, price, shop, paid = (ks.col(name) for name in ("amount", "price", "shop", "paid"))

PREDICATES: list[Any] = [
    amount > 2,
    paid,
    ~paid | (price < 0.5),
    (amount % 3 == 0) & ~shop.is_null(),
    shop.str.upper().is_in(["X", "SS"]),
    ks.key.str.starts_with("a"),
    ks.timestamp % 20 < 10,
    ~ks.value.is_null(),
    amount * amount + 1 > 10,
    ks.when(paid).then(amount).otherwise(0) >= 0,
    lambda key, order: order is not None and order["paid"] is not False,
    lambda key, order: key is not None and key > "a",
]
MADE: list[Any] = [
    ks.struct(shop=shop, amount=amount + 1, price=price * 2, paid=paid),
    ks.struct(shop=shop.fill_null("?"), amount=ks.coalesce(amount, 0), price=price.abs(), paid=ks.lit(True)),
    lambda order: None if order is None else {**order, "amount": (order["amount"] or 0) % 5},
]
KEYS: list[Any] = [
    shop,
    shop.str.lower() + "!",
    ks.key,
    lambda key, order: None if order is None else order["shop"],
]
JOINERS: list[Any] = [
    ks.struct(shop=ks.right.col("shop"), amount=ks.left.col("amount"), price=ks.right.col("price") + price, paid=paid),
    ks.struct(shop=shop, amount=ks.coalesce(ks.right.col("amount"), amount), price=price, paid=ks.right.col("paid")),
    lambda left, right: left if right is None else right if left is None else {**left, "shop": right["shop"]},
]
AGGREGATES: dict[str, list[Any]] = {
    "shop": [shop.first(), shop.last()],
    "amount": [ks.len(), amount.sum() // 16, amount.min(), amount.max(), amount.count(), shop.n_unique()],
    "price": [price.sum(), price.min(), price.max(), price.mean(), amount.mean()],
    "paid": [paid.first(), paid.last()],
}


def add(key: str, order: Order, total: Order) -> Order:
    """A Python aggregator."""
    return {**total, "amount": (total["amount"] or 0) + 1, "shop": order["shop"] if order else None}


def nothing() -> Order:
    """Its beginning."""
    return {"shop": None, "amount": 0, "price": None, "paid": None}


def latest(key: str, order: Order, total: Order) -> Order:
    """A Python aggregator by which the order of records shows: it keeps the last one."""
    return order


def unchanged(key: str, order: Order, total: Order) -> Order:
    """What it takes back: nothing."""
    return total


class Maker:
    """Makes one topology.

    Parameters
    ----------
    seed : int or str
        Says all about it.
    moment_ms : int
        What windows, graces and limits are multiples of.
    """

    def __init__(self, seed: int | str, moment_ms: int = 1) -> None:
        self.random, self.moment_ms = Random(seed), moment_ms
        self.builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
        self.said: list[str] = []
        self.streams: list[Stream] = [self._source(f"in-{n}") for n in range(self.random.randint(1, 2))]
        self.tables: list[Table] = []
        self.global_table: Any = None

    def topology(self) -> ks.Topology:
        """Some steps after each other, and a sink for all that is left."""
        for _ in range(self.random.randint(1, 5)):
            self._step(self._pick(list(STEPS)))
        return self._finished()

    def _finished(self) -> ks.Topology:
        for number, stream in enumerate(self.streams):
            if number == 0 or self.random.random() < 0.8:
                self._sink(stream, number)
        return self.builder.build()

    def topics(self) -> dict[str, list[Row]]:
        """Input for all topics that may be read."""
        return {topic: self._rows() for topic in ("in-0", "in-1", "table", "global")}

    def cuts(self) -> list[int]:
        """Where a batch ends beside where it must."""
        return [self.random.randint(0, 60) for _ in range(self.random.randint(0, 8))]

    def _pick(self, options: list[Any]) -> Any:
        return self.random.choice(options)

    def _rows(self) -> list[Row]:
        at, rows = 0, []
        for _ in range(self.random.randint(5, 45)):
            at = max(0, at + self._pick([0, 1, 2, 3, 3, 12, -7]))
            key = self._pick([b"a", b"b", b"c", "é".encode(), b"a", None if self.random.random() < 0.2 else b"b"])
            order = {
                "shop": self._pick([None, "x", "y", "Z", "ß"]),
                "amount": self._pick(NUMBERS),
                "price": self._pick(PRICES),
                "paid": self._pick([None, True, False]),
            }
            rows.append(Row(key, None if self.random.random() < 0.1 else json.dumps(order).encode(), at, ()))
        return rows

    def _source(self, topic: str) -> Stream:
        return self.builder.stream(topic, key=str, value=Order)

    def _step(self, name: str) -> None:
        self.said.append(name)
        at = self.random.randrange(len(self.streams))
        made = STEPS[name](self, self.streams[at])
        self.streams[at : at + 1] = made if isinstance(made, list) else [made]
        if self.random.random() < 0.15:
            self.streams.append(self.streams[at])  # two ways behind one stream

    def _sink(self, stream: Stream, number: int) -> None:
        stream.to(self._sink_topic(number), key=str, value=Order)

    def _sink_topic(self, number: int) -> Any:
        return self._pick([f"out-{number}", f"out-{number}", "shared", lambda key, order, context: f"odd-{key}"])

    # ---- tables

    def table(self) -> Table:
        """A table to join with: of a topic, of a stream, or the view of one."""
        if not self.tables:
            self.tables.append(self.builder.table("table", key=str, value=Order, materialized="table"))
        table = self._pick(self.tables)
        view = self.random.random()
        if view < 0.2:
            return table.filter(self._row_predicate())
        return table.map_values(self._pick(MADE), value=Order) if view < 0.4 else table

    def _row_predicate(self) -> Any:
        return self._pick([amount > 1, shop.is_in(["x", "y"]), lambda key, order: order["paid"]])

    def places(self) -> Any:
        """The global table."""
        if self.global_table is None:
            self.global_table = self.builder.global_table("global", key=str, value=Order, materialized="global")
        return self.global_table

    # ---- aggregations

    def aggregated(self, stream: Stream) -> Stream:
        """A table of orders out of a grouped stream, over all time or by windows, as a stream again."""
        grouped = stream.group_by_key(key=str, value=Order) if self.random.random() < 0.6 else self._regrouped(stream)
        kind = self._pick(["all", "all", "tumbling", "hopping", "session", "sliding"])
        if kind == "all":
            table = self._aggregate(grouped)
            if self.random.random() < 0.3:
                self.tables.append(table)
            return table.to_stream()
        return self._windowed(grouped, kind).to_stream().map(inner_key, key=str, value=Order)

    def _regrouped(self, stream: Stream) -> ks.KGroupedStream[Any, Any]:
        return stream.group_by(self._pick(KEYS), key=str, value=Order)

    def _windowed(self, grouped: Any, kind: str) -> Table:
        grace = self._pick([0, 5, 30])
        windowed = grouped.windowed_by(WINDOWS[kind](self.moment_ms, grace * self.moment_ms))
        on_close = self.random.random() < 0.3
        if on_close:
            windowed = windowed.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
        table = self._aggregate(windowed, merger=kind == "session")
        if not on_close and kind != "sliding" and self.random.random() < 0.2:
            return table.suppress(ks.Suppressed.until_window_closes())
        return table

    def _aggregate(self, grouped: Any, *, merger: bool = False) -> Table:
        how = self._pick(["count", "expressions", "expressions", "functions", "reduce"])
        self.said[-1] += f" {how}"
        if how == "count":
            return grouped.count().map_values(counted, value=Order)
        if how == "reduce":
            return grouped.reduce(lambda old, new: {**old, "amount": new["amount"] if new else None})
        if how == "functions":
            merging = {"merger": lambda key, one, other: {**one, "amount": one["amount"] + other["amount"]}}
            return grouped.aggregate(nothing, add, value=Order, **(merging if merger else {}))
        return grouped.aggregate(value=Order, **{name: self._pick(options) for name, options in AGGREGATES.items()})


def inner_key(key: Any, order: Any) -> tuple[Any, Any]:
    """Of a windowed key: the key with the window in it, as text."""
    return f"{key.key}@{key.window.start_ms}", order


def counted(count: int) -> Order:
    """A count as an order."""
    return {**nothing(), "amount": count}


WINDOWS: dict[str, Callable[[int, int], Any]] = {
    "tumbling": lambda moment, grace: ks.TimeWindows(size=10 * moment, grace=grace),
    "hopping": lambda moment, grace: ks.TimeWindows(size=10 * moment, advance=4 * moment, grace=grace),
    "session": lambda moment, grace: ks.SessionWindows(gap=5 * moment, grace=grace),
    "sliding": lambda moment, grace: ks.SlidingWindows(difference=6 * moment, grace=grace),
}
"""By the length of a moment and the grace."""


def _branches(maker: Maker, stream: Stream) -> list[Stream]:
    split = stream.split().branch(maker._pick(PREDICATES)).branch(maker._pick(PREDICATES))
    return list((split.default_branch() if maker.random.random() < 0.5 else split.no_default_branch()).values())


def _merged(maker: Maker, stream: Stream) -> Stream:
    return stream.merge(maker._pick([*maker.streams, stream.filter(maker._pick(PREDICATES))]))


def _table_join(maker: Maker, stream: Stream) -> Stream:
    join = maker._pick([stream.join, stream.left_join])
    options: Any = {"key": str, "value": Order, "other_value": Order}
    return join(maker.table(), maker._pick(JOINERS), **options).map_values(typed, value=Order)


def _global_join(maker: Maker, stream: Stream) -> Stream:
    join = maker._pick([stream.join, stream.left_join])
    return join(maker.places(), maker._pick(JOINERS), key_selector=maker._pick(KEYS)).map_values(typed, value=Order)


def _stream_join(maker: Maker, stream: Stream) -> Stream:
    join = maker._pick([stream.join, stream.left_join, stream.outer_join])
    windows = ks.JoinWindows.of(6 * maker.moment_ms, grace=maker._pick([0, 10]) * maker.moment_ms)
    span = maker._pick([{"windows": windows}] * 2 + [{"retain": maker._pick([0, 5, 12]) * maker.moment_ms}])
    other = maker._pick(maker.streams)
    options: Any = {**span, "key": str, "value": Order, "other_value": Order}
    return join(other, maker._pick(JOINERS), **options).map_values(typed, value=Order)


def typed(order: Any) -> Any:
    """What an expression made, as the dict that an order is."""
    if order is None or isinstance(order, dict):
        return order
    return {name: getattr(order, name) for name in Order.__annotations__}


def _through_table(maker: Maker, stream: Stream) -> Stream:
    table = stream.to_table(key=str, value=Order, materialized=f"kept-{len(maker.said)}")
    maker.tables.append(table)
    if maker.random.random() < 0.5:
        table = table.filter(maker._row_predicate())
    return table.to_stream()


def _table_of(maker: Maker, stream: Stream) -> Table:
    return stream.to_table(key=str, value=Order, materialized=f"kept-{len(maker.said)}")


def _tables_joined(maker: Maker, stream: Stream) -> Stream:
    table = _table_of(maker, stream)
    join = maker._pick([table.join, table.left_join, table.outer_join])
    return join(maker.table(), JOINERS[-1], value=Order).to_stream()


def _table_grouped(maker: Maker, stream: Stream) -> Stream:
    pair = maker._pick([(shop, ks.value), lambda key, order: (order["shop"], order)])
    grouped = _table_of(maker, stream).group_by(pair, key=str, value=Order)
    if maker.random.random() < 0.5:
        return grouped.count().map_values(counted, value=Order).to_stream()
    minus = lambda key, order, total: {**total, "amount": (total["amount"] or 0) - 1}  # noqa: E731
    return grouped.aggregate(nothing, add, minus, value=Order).to_stream()


def _last_of_groups(maker: Maker, stream: Stream) -> Stream:
    return _grouped_to_last(maker, _table_of(maker, stream))


def _last_of_windows(maker: Maker, stream: Stream) -> Stream:
    grouped = stream.group_by_key(key=str, value=Order) if maker.random.random() < 0.5 else maker._regrouped(stream)
    kind, grace = maker._pick([*WINDOWS]), maker._pick([0, 5])
    windowed = grouped.windowed_by(WINDOWS[kind](maker.moment_ms, grace * maker.moment_ms))
    on_close = kind == "sliding" or maker.random.random() < 0.5
    if on_close:
        windowed = windowed.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    table = maker._aggregate(windowed, merger=kind == "session")
    return _grouped_to_last(maker, table if on_close else table.suppress(ks.Suppressed.until_window_closes()))


def _grouped_to_last(maker: Maker, table: Table) -> Stream:
    pair = maker._pick([lambda key, order: (order["shop"], order), lambda key, order: ("one", order)])
    return table.group_by(pair, key=str, value=Order).aggregate(nothing, latest, unchanged, value=Order).to_stream()


def _held_back(maker: Maker, stream: Stream) -> Stream:
    limit = ks.Suppressed.until_time_limit(10 * maker.moment_ms, max_records=maker._pick([None, 2]))
    return _table_of(maker, stream).suppress(limit).to_stream()


def _cogrouped(maker: Maker, stream: Stream) -> Stream:
    streams = (stream, stream.filter(maker._pick(PREDICATES)))
    # Two that must be repartitioned need names, in Kafka Streams too: their topics would be called alike.
    first, second = (
        each.group_by_key(key=str, value=Order, name=f"side-{len(maker.said)}-{at}") for at, each in enumerate(streams)
    )
    return first.cogroup(add).cogroup(second, add).aggregate(nothing, value=Order).to_stream()


class Twice(ks.FixedKeyProcessor[str, Any, Any]):
    """Forwards everything twice."""

    def init(self, context: Any) -> None:
        """Keep the context."""
        self.context = context

    def process(self, record: Any) -> None:
        """Forward."""
        self.context.forward(record)
        self.context.forward(record)


STEPS: dict[str, Callable[[Maker, Stream], Any]] = {
    "filter": lambda maker, stream: stream.filter(maker._pick(PREDICATES)),
    "filter_not": lambda maker, stream: stream.filter_not(maker._pick(PREDICATES)),
    "map_values": lambda maker, stream: stream.map_values(maker._pick(MADE), value=Order),
    "select_key": lambda maker, stream: stream.select_key(maker._pick(KEYS), key=str),
    "map": lambda maker, stream: stream.map((shop, MADE[0]), key=str, value=Order),
    "flat_map_values": lambda maker, stream: stream.flat_map_values(lambda order: [order, order], value=Order),
    "peek": lambda maker, stream: stream.peek(lambda key, order: None),
    "repartition": lambda maker, stream: stream.repartition(key=str, value=Order),
    "branches": _branches,
    "merge": _merged,
    "table join": _table_join,
    "global join": _global_join,
    "stream join": _stream_join,
    "through a table": _through_table,
    "join of tables": _tables_joined,
    "grouped table": _table_grouped,
    "suppress": _held_back,
    "last of groups": _last_of_groups,
    "last of windows": _last_of_windows,
    "cogroup": _cogrouped,
    "process_values": lambda maker, stream: stream.process_values(Twice, value=Order),
    "deduplicate": lambda maker, stream: stream.deduplicate(maker._pick([3, 20]) * maker.moment_ms, key=str),
    "sample": lambda maker, stream: stream.sample(0.6, key=str),
    "top_n": lambda maker, stream: (
        stream.group_by_key(key=str, value=Order)
        .top_n(2, lambda order: order["amount"] or 0)
        .to_stream()
        .flat_map_values(lambda orders: orders, value=Order)
    ),
    "aggregate": Maker.aggregated,
    "aggregate again": Maker.aggregated,
}
