"""Topologies of tables that have a form on the relational path of Spark, and their input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kstreams as ks
from tests.spark.running import Row

Build = Callable[[ks.StreamsBuilder], None]

TYPES = {"users": (str, str), "sales": (str, int), "out": (str, int)}


def users(builder: ks.StreamsBuilder) -> Any:
    return builder.table("users", key=str, value=str)


def sales(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("sales", key=str, value=int)


def copied(builder: ks.StreamsBuilder) -> None:
    users(builder).to_stream().map_values(lambda name: -1 if name is None else len(name), value=int).to("out")


def filtered(builder: ks.StreamsBuilder) -> None:
    long = users(builder).filter(lambda key, name: len(name) > 9)
    long.map_values(ks.value.str.len(), value=int).to_stream().to("out")


def filtered_by_expressions(builder: ks.StreamsBuilder) -> None:
    rows = (
        sales(builder).to_table().filter_not(ks.value > 4).map_values(ks.when(ks.value.is_null()).then(1).otherwise(7))
    )
    rows.to_stream().to("out")


def mapped(builder: ks.StreamsBuilder) -> None:
    """A row that the function leaves out is deleted."""
    sized = users(builder).map_values(lambda key, name: len(key + name) if name else None, with_key=True, value=int)
    sized.to_stream().to("out")


def of_a_stream(builder: ks.StreamsBuilder) -> None:
    sold = sales(builder).filter(ks.value != 3).to_table().filter(lambda key, n: n % 2 == 0)
    sold.to_stream().to("out")


def filtered_counts(builder: ks.StreamsBuilder) -> None:
    """A table of aggregates and a view of it."""
    counts = sales(builder).group_by_key().count().map_values(lambda n: n * 10, value=int)
    counts.to_stream().to("out")


def joined_with_a_view(builder: ks.StreamsBuilder) -> None:
    sizes = users(builder).filter(lambda key, name: len(name) > 4).map_values(len, value=int)
    sales(builder).left_join(sizes, lambda n, size: n if size is None else size * 100, value=int).to("out")


def joined_with_a_table_of_records(builder: ks.StreamsBuilder) -> None:
    seen = builder.stream("users", key=str, value=str).filter(ks.value != "u").to_table()
    sales(builder).join(seen, lambda n, name: n + len(name), value=int).to("out")


def joined_with_itself(builder: ks.StreamsBuilder) -> None:
    sold = sales(builder)
    sold.join(sold.filter(ks.value > 2).to_table(), lambda n, last: n * 100 + last, value=int).to("out")


BUILDS = (
    copied,
    filtered,
    filtered_by_expressions,
    mapped,
    of_a_stream,
    filtered_counts,
    joined_with_a_view,
    joined_with_a_table_of_records,
    joined_with_itself,
)


def rows() -> list[Row]:
    """Sales of five people, some without a key or a value, some late; users who come, change and go."""
    found = []
    for at in range(120):
        key, value = None if at % 17 == 0 else f"k{at % 5}", None if at % 13 == 0 else at % 7
        found.append(Row("sales", key, value, 1_000 + at * 10 - (35 if at % 11 == 0 else 0), 0))
    for at in range(30):
        key = None if at % 9 == 0 else f"k{at % 6}"
        found.append(Row("users", key, None if at % 7 == 0 else "u" * at, 1_003 + at * 40, 0))
    return found
