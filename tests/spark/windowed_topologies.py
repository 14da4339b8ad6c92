"""Topologies with windows that have a form on the relational path of Spark, and their input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

import kstreams as ks
from tests.spark.running import Row

Build = Callable[[ks.StreamsBuilder], None]


class Order(msgspec.Struct):
    item: str
    amount: int
    price: float | None = None


def orders(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("in", key=str, value=Order)


def windows(builder: ks.StreamsBuilder) -> None:
    kept = (
        orders(builder).filter(~ks.col("amount").is_null()).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=5))
    )
    final = kept.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).aggregate(
        orders=ks.len(), most=ks.col("amount").max(), mean=ks.col("price").mean(), value=Totals
    )
    final.to_stream().map(lambda key, totals: (f"{key.key}@{key.window.start_ms}", totals), key=str, value=Totals).to(
        "out"
    )


def hopping_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.TimeWindows(size=10, advance=5, grace=0)).count()
    final = counted.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("out")


def tumbling_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    final = counted.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("out")


def updated_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.TimeWindows(size=10, advance=5, grace=100)).count()
    named = counted.to_stream().map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int)
    named.to("out")


def updated_totals(builder: ks.StreamsBuilder) -> None:
    kept = orders(builder).filter(~ks.col("amount").is_null())
    totals = (
        kept.group_by_key()
        .windowed_by(ks.TimeWindows(size=20, grace=100))
        .aggregate(orders=ks.len(), most=ks.col("amount").max(), mean=ks.col("price").mean(), value=Totals)
    )
    totals.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", value=Totals)


def counts_behind_a_repartition(builder: ks.StreamsBuilder) -> None:
    kept = orders(builder).filter(ks.key != "-").repartition(name="one", partitions=1)
    counted = kept.group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    counted.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", value=int)


def joined_streams(builder: ks.StreamsBuilder) -> None:
    paid = builder.stream("paid", key=str, value=str)
    window = ks.JoinWindows(before=3, after=5, grace=100)
    orders(builder).join(paid, paid_by, windows=window, value=str, other_value=str).to("out")


def joined_by_expression(builder: ks.StreamsBuilder) -> None:
    paid = builder.stream("paid", key=str, value=str)
    window = ks.JoinWindows(before=3, after=5, grace=100)
    orders(builder).join(paid, ks.left.col("item") + " by " + ks.right.value, windows=window).to("out")


def left_joined_streams(builder: ks.StreamsBuilder) -> None:
    paid = builder.stream("paid", key=str, value=str)
    window = ks.JoinWindows(before=1, after=1, grace=100)
    orders(builder).left_join(paid, paid_by, windows=window, value=str, other_value=str).to("out")


def joined_table(builder: ks.StreamsBuilder) -> None:
    orders(builder).join(builder.table("paid", key=str, value=str), paid_by, value=str).to("out")


def left_joined_table(builder: ks.StreamsBuilder) -> None:
    orders(builder).left_join(builder.table("paid", key=str, value=str), paid_by, value=str).to("out")


def counts(builder: ks.StreamsBuilder) -> None:
    orders(builder).group_by_key().count().to_stream().to("out")


def outer_joined_streams(builder: ks.StreamsBuilder) -> None:
    paid = builder.stream("paid", key=str, value=str)
    window = ks.JoinWindows(before=0, after=1, grace=100)
    taken = orders(builder)
    taken.outer_join(paid, paid_by_key, windows=window, with_key=True, value=str, other_value=str).to("out")


def paid_by_key(key: str, order: Order | None, by: str | None) -> str:
    return f"{key}: {paid_by(order, by)}"


def self_joined(builder: ks.StreamsBuilder) -> None:
    window = ks.JoinWindows(before=7, after=3, grace=100)
    taken = orders(builder)
    taken.join(taken, lambda one, two: f"{one.amount}, {two.amount}", windows=window, value=str).to("out")


def outer_self_joined(builder: ks.StreamsBuilder) -> None:
    """Every record meets itself: no one stays alone."""
    window, taken = ks.JoinWindows(before=7, after=3, grace=100), orders(builder)
    taken.outer_join(taken, lambda one, two: f"{one.amount}, {two.amount}", windows=window, value=str).to("out")


def sessions(builder: ks.StreamsBuilder) -> None:
    kept = orders(builder).group_by_key().windowed_by(ks.SessionWindows(gap=6, grace=4))
    final = kept.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).aggregate(
        orders=ks.len(), most=ks.col("amount").max(), mean=ks.col("price").mean(), value=Totals
    )
    named = final.to_stream().map(
        lambda key, totals: (f"{key.key}@{key.window.start_ms}-{key.window.end_ms}", totals), key=str, value=Totals
    )
    named.to("out")


def session_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.SessionWindows(gap=6, grace=4))
    counted.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("out")


def named_session_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.SessionWindows(gap=6, grace=4)).count()
    final = counted.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("out")


def amounts(builder: ks.StreamsBuilder) -> Any:
    """The amounts of orders; those without one are left out."""
    kept = orders(builder).filter(lambda key, order: order is not None)
    return kept.map_values(lambda order: order.amount, value=int).group_by_key()


def last_two_of_windows(builder: ks.StreamsBuilder) -> None:
    """What a function makes of windows that overlap; some are deleted."""
    kept = amounts(builder).windowed_by(ks.TimeWindows(size=20, advance=10, grace=5))
    final = kept.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).aggregate(
        lambda: "", lambda key, amount, two: None if amount == 7 else f"{key}{two[-1:]}{amount}", value=str
    )
    final.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", value=str)


def reduced_windows(builder: ks.StreamsBuilder) -> None:
    kept = amounts(builder).windowed_by(ks.TimeWindows(size=10, grace=0)).reduce(lambda old, new: old * 3 + new)
    final = kept.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, amount: (f"{key.key}@{key.window.start_ms}", amount), key=str, value=int).to("out")


def joined_sessions(builder: ks.StreamsBuilder) -> None:
    """What functions make of sessions, and of two that become one."""
    kept = amounts(builder).windowed_by(ks.SessionWindows(gap=6, grace=4))
    final = kept.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).aggregate(
        lambda: "",
        lambda key, amount, text: f"{text}.{amount}",
        merger=lambda key, one, other: f"({one}+{other})",
        value=str,
    )
    final.to_stream().map(
        lambda key, text: (f"{key.key}@{key.window.start_ms}-{key.window.end_ms}", text), key=str, value=str
    ).to("out")


def reduced_sessions(builder: ks.StreamsBuilder) -> None:
    kept = amounts(builder).windowed_by(ks.SessionWindows(gap=5, grace=0)).reduce(max)
    final = kept.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, amount: (f"{key.key}@{key.window.start_ms}", amount), key=str, value=int).to("out")


def final_counts(stream: Any, windows: Any) -> Any:
    counted = stream.group_by_key().windowed_by(windows)
    return counted.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream()


def windows_of_windows(builder: ks.StreamsBuilder) -> None:
    """What many keys had in ten, all together in twenty: behind a repartition."""
    tens = final_counts(orders(builder), ks.TimeWindows(size=10, grace=5))
    together = tens.map(lambda key, count: ("all", count), key=str, value=int).group_by_key()
    twenties = together.windowed_by(ks.TimeWindows(size=20, grace=100)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    sums = twenties.aggregate(keys=ks.len(), orders=ks.value.sum(), value=Sums)
    sums.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", value=Sums)


def windows_beside_each_other(builder: ks.StreamsBuilder) -> None:
    taken = orders(builder)
    for size in (10, 20):
        counted = final_counts(taken, ks.TimeWindows(size=size, grace=5))
        named = counted.map(
            lambda key, n, size=size: (f"{key.key}@{key.window.start_ms}+{size}", n), key=str, value=int
        )
        named.to("out")


def windows_of_two_topics(builder: ks.StreamsBuilder) -> None:
    taken, paid = orders(builder), builder.stream("paid", key=str, value=str)
    for stream, size in ((taken, 10), (paid, 10), (paid, 30)):
        counted = final_counts(stream, ks.TimeWindows(size=size, grace=5))
        named = counted.map(
            lambda key, n, size=size: (f"{key.key}@{key.window.start_ms}+{size}", n), key=str, value=int
        )
        named.to("out")


def paid_by(order: Order | None, by: str | None) -> str:
    return f"{order and order.item} by {by}"


class Sums(msgspec.Struct):
    keys: int
    orders: int


class Totals(msgspec.Struct):
    orders: int
    most: int | None
    mean: float | None


TIMED = [Row("in", "ab"[i % 2], Order("tea", i, i / 2 if i % 3 else None), 1 + 3 * i, i % 2) for i in range(20)]
TIMED.append(Row("in", None, Order("pot", 1), 60, 0))
PAID = [Row("paid", "ab"[i % 2], f"p{i}", 2 + 4 * i, i % 2) for i in range(15)]
PAID.append(Row("paid", None, "nobody", 60, 0))
CACHED = {"statestore.cache.max.bytes": 1 << 20}
SELF_JOINS = {"topology.optimization": "single.store.self.join"}
WINDOWED: list[tuple[Build, type]] = [
    (windows, Totals),
    (hopping_counts, int),
    (sessions, Totals),
    (joined_streams, str),
    (joined_by_expression, str),
    (left_joined_streams, str),
    (outer_joined_streams, str),
    (self_joined, str),
    (outer_self_joined, str),
    (last_two_of_windows, str),
    (reduced_windows, int),
    (joined_sessions, str),
    (reduced_sessions, int),
    (windows_of_windows, Sums),
    (windows_beside_each_other, int),
    (windows_of_two_topics, int),
]
UPDATED: list[tuple[Build, type]] = [(updated_counts, int), (updated_totals, Totals)]
"""Without suppress: every change of a window is asked for."""
