"""Settings of `Materialized` that the store of a table does not have are refused where the table is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import TopologyError

TEXTS: dict[str, Any] = {"key": str, "value": str}

Declared = Callable[[ks.StreamsBuilder, ks.Materialized], Any]


def grouped(builder: ks.StreamsBuilder) -> ks.KGroupedStream[str, str]:
    return builder.stream("in", **TEXTS).group_by_key()


def tables(builder: ks.StreamsBuilder) -> tuple[ks.KTable[str, str], ks.KTable[str, str]]:
    return builder.table("left", **TEXTS), builder.table("right", **TEXTS)


def joined(builder: ks.StreamsBuilder, kept: ks.Materialized) -> Any:
    left, right = tables(builder)
    return left.join(right, lambda one, other: one, value=str, materialized=kept)


def joined_by_foreign_key(builder: ks.StreamsBuilder, kept: ks.Materialized) -> Any:
    left, right = tables(builder)
    return left.join(right, lambda one, other: one, foreign_key=lambda row: row, value=str, materialized=kept)


AGGREGATES: dict[str, Declared] = {
    "count": lambda builder, kept: grouped(builder).count(kept),
    "reduce": lambda builder, kept: grouped(builder).reduce(min, materialized=kept),
    "aggregate": lambda builder, kept: grouped(builder).aggregate(str, lambda k, v, a: v, materialized=kept),
    "cogroup": lambda builder, kept: grouped(builder).cogroup(lambda k, v, a: v).aggregate(str, materialized=kept),
    "of a table": lambda builder, kept: tables(builder)[0].group_by(lambda k, v: (v, v), **TEXTS).count(kept),
}
OTHERS: dict[str, Declared] = {
    "table": lambda builder, kept: builder.table("in", **TEXTS, materialized=kept),
    "to_table": lambda builder, kept: builder.stream("in", **TEXTS).to_table(materialized=kept),
    "filter": lambda builder, kept: tables(builder)[0].filter(lambda k, v: True, materialized=kept),
    "map_values": lambda builder, kept: tables(builder)[0].map_values(str, value=str, materialized=kept),
    "join": joined,
    "foreign key": joined_by_foreign_key,
}
WINDOWED: dict[str, Declared] = {
    "tumbling": lambda builder, kept: grouped(builder).windowed_by(ks.TimeWindows(size=5, grace=0)).count(kept),
    "session": lambda builder, kept: grouped(builder).windowed_by(ks.SessionWindows(gap=5, grace=0)).count(kept),
    "sliding": lambda builder, kept: grouped(builder).windowed_by(ks.SlidingWindows(difference=5, grace=0)).count(kept),
    "cogroup": lambda builder, kept: (
        grouped(builder)
        .cogroup(lambda k, v, a: v)
        .windowed_by(ks.TimeWindows(size=5, grace=0))
        .aggregate(str, materialized=kept)
    ),
}


def global_table(builder: ks.StreamsBuilder, kept: ks.Materialized) -> Any:
    return builder.global_table("in", **TEXTS, materialized=kept)


@pytest.mark.parametrize("declare", [*AGGREGATES.values(), *OTHERS.values(), global_table])
def test_a_retention_is_for_windows_alone(declare: Declared) -> None:
    with pytest.raises(
        TopologyError, match=r"retention= .* at .*test_materialized.py:\d+ says how long windows are kept"
    ):
        declare(ks.StreamsBuilder(), ks.Materialized("store", retention=5))


@pytest.mark.parametrize("declare", AGGREGATES.values())
def test_an_aggregate_keeps_no_history(declare: Declared) -> None:
    with pytest.raises(TopologyError, match=r"history_retention= .* has no effect: an aggregate keeps no history"):
        declare(ks.StreamsBuilder(), ks.Materialized("store", history_retention=5))


@pytest.mark.parametrize("declare", WINDOWED.values())
def test_windows_keep_no_history(declare: Declared) -> None:
    with pytest.raises(TopologyError, match=r"say retention=, not history_retention="):
        declare(ks.StreamsBuilder(), ks.Materialized("store", history_retention=5))


@pytest.mark.parametrize("declare", WINDOWED.values())
def test_windows_have_a_retention(declare: Declared) -> None:
    declare(ks.StreamsBuilder(), ks.Materialized("store", retention=1_000))


@pytest.mark.parametrize("declare", OTHERS.values())
def test_other_tables_may_keep_a_history(declare: Declared) -> None:
    builder = ks.StreamsBuilder()
    declare(builder, ks.Materialized("store", history_retention=5))
    assert builder.build().stores["store"].history_retention_ms == 5


def test_a_global_table_has_no_changelog_to_set() -> None:
    with pytest.raises(TopologyError, match="has no changelog that logging= could give settings"):
        global_table(ks.StreamsBuilder(), ks.Materialized("store", logging={"retention.ms": "5"}))
