"""Chains of operators with state: Spark refuses most of them when a query starts, so they run as tasks instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine

REASONS = {
    "Spark keeps one state in a query: write what comes before it to a topic, and read that",
    "a change stream with tombstones has no form in Spark",
}
MINUTES = ks.TimeWindows(size=60_000, grace=0)
HOURS = ks.TimeWindows(size=3_600_000, grace=0)
NEAR = ks.JoinWindows(before=1_000, after=1_000, grace=0)


class Pair(msgspec.Struct, frozen=True):
    one: int
    other: int | None


PAIR = ks.struct(one=ks.left.value, other=ks.right.value)


def numbers(builder: ks.StreamsBuilder, topic: str = "in") -> Any:
    return builder.stream(topic, key=str, value=int)


def counts(stream: Any, windows: Any = MINUTES) -> Any:
    return stream.group_by_key().windowed_by(windows).count()


def closed(stream: Any, windows: Any = MINUTES) -> Any:
    return counts(stream, windows).suppress(ks.Suppressed.until_window_closes())


def counted(stream: Any) -> Any:
    return stream.group_by_key().count()


def without_windows(table: Any) -> Any:
    return table.to_stream().select_key(ks.value.cast(str))


def joined(builder: ks.StreamsBuilder, how: str = "join") -> Any:
    join = getattr(numbers(builder), how)
    return join(numbers(builder, "more"), PAIR, windows=NEAR, value=Pair)


CHAINS: dict[str, Callable[[ks.StreamsBuilder], Any]] = {
    "inner join, then windows": lambda builder: closed(joined(builder)).to_stream(),
    "left join, then windows": lambda builder: counts(joined(builder, "left_join")).to_stream(),
    "windows of windows": lambda builder: closed(without_windows(closed(numbers(builder))), HOURS).to_stream(),
    "windows, then a count": lambda builder: counted(without_windows(counts(numbers(builder)))).to_stream(),
    "a count of a count": lambda builder: counted(without_windows(counted(numbers(builder)))).to_stream(),
    "a join of counts": lambda builder: (
        counted(numbers(builder)).join(counted(numbers(builder, "more")), ks.left.value + ks.right.value).to_stream()
    ),
    "windows joined with a stream": lambda builder: without_windows(closed(numbers(builder))).join(
        numbers(builder, "more"), PAIR, windows=NEAR, value=Pair
    ),
    "two joins": lambda builder: joined(builder).join(
        numbers(builder, "third"), ks.struct(one=ks.right.value, other=ks.right.value), windows=NEAR, value=Pair
    ),
}


def decisions(chain: Callable[[ks.StreamsBuilder], Any]) -> list[Any]:
    builder = ks.StreamsBuilder()
    chain(builder).to("out")
    return engine.explain(builder.build(), Config.of({"application.id": "app", "spark.kstreams.path": "relational"}))


@pytest.mark.parametrize("name", CHAINS)
def test_the_second_state_of_a_chain_is_in_no_query(name: str) -> None:
    rows = decisions(CHAINS[name])
    assert {row.path for row in rows} == {"task"}
    assert REASONS & {row.why for row in rows}


UNITED: dict[str, Callable[[ks.StreamsBuilder], Any]] = {
    "a table, then windows": lambda builder: counts(
        numbers(builder).join(builder.table("more", key=str, value=int), ks.right.value, value=int)
    ).to_stream(),
    "two streams, then windows": lambda builder: counts(numbers(builder).merge(numbers(builder, "more"))).to_stream(),
}


@pytest.mark.parametrize("name", UNITED)
def test_one_state_behind_joined_or_merged_rows_is_a_query(name: str) -> None:
    assert {row.path for row in decisions(UNITED[name])} == {"relational"}
