"""`explain` says of which operators steps change the results, and of no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.engine import AFTER_OTHERS, SHARES

pytestmark = pytest.mark.spark


def said(build: Callable[[ks.StreamsBuilder], Any], sentence: str, **settings: Any) -> list[str]:
    """The kinds of the operators of which `explain` says this."""
    builder = ks.StreamsBuilder()
    build(builder)
    rows = engine.explain(builder.build(), Config.of({"application.id": "app", **settings}))
    return sorted(row.operator.rpartition("-")[0] for row in rows if sentence in row.why)


def both(left: str, right: str) -> str:
    return left + right


def read(builder: ks.StreamsBuilder, topic: Any, **given: Any) -> ks.KStream:
    return builder.stream(topic, key=str, value=str, **given)


def rekeyed(builder: ks.StreamsBuilder) -> None:
    read(builder, "a").group_by(lambda key, value: value, key=str).count().to_stream().to("out", value=int)


def joined(builder: ks.StreamsBuilder) -> None:
    within = ks.JoinWindows(before=10, after=10)
    read(builder, "a").join(read(builder, "b"), both, windows=within).to("out")


def rekeyed_and_joined(builder: ks.StreamsBuilder) -> None:
    turned = read(builder, "a").select_key(lambda key, value: value, key=str)
    turned.join(builder.table("b", key=str, value=str), both).to("out")


def rekeyed_twice(builder: ks.StreamsBuilder) -> None:
    once = read(builder, "a").group_by(lambda key, value: value, key=str).count()
    once.group_by(lambda key, count: (count, key), key=int, value=str).count().to_stream().to("out")


def through_an_own_topic(builder: ks.StreamsBuilder) -> None:
    read(builder, "a").to("b")
    read(builder, "b").join(builder.table("c", key=str, value=str), both).to("out")


@pytest.mark.parametrize("build", [rekeyed, joined, rekeyed_and_joined, rekeyed_twice, through_an_own_topic])
def test_steps_change_nothing_where_one_clock_cuts_all_input(build: Callable[[ks.StreamsBuilder], Any]) -> None:
    assert said(build, SHARES) == said(build, AFTER_OTHERS) == []


def joined_by_foreign_key(builder: ks.StreamsBuilder) -> ks.KTable:
    left, right = (builder.table(topic, key=str, value=str) for topic in "ab")
    return left.join(right, both, foreign_key=lambda value: value, value=str)


def rekeyed_after_a_foreign_key(builder: ks.StreamsBuilder) -> None:
    grouped = joined_by_foreign_key(builder).group_by(lambda key, value: (value, key), key=str, value=str)
    grouped.count().to_stream().to("out", value=int)


def test_what_follows_from_a_foreign_key_join_is_warned_of_where_it_is_repartitioned() -> None:
    assert "KTABLE-AGGREGATE" in said(rekeyed_after_a_foreign_key, AFTER_OTHERS)


def test_extractors_are_warned_of_at_all_sources_whose_records_meet() -> None:
    def timed(builder: ks.StreamsBuilder) -> None:
        own = read(builder, "a", timestamp_extractor=lambda record, partition_time: 5)
        own.join(read(builder, "b"), both, windows=ks.JoinWindows(before=10, after=10)).to("out")
        read(builder, "c").to("out")

    assert said(timed, SHARES) == ["KSTREAM-SOURCE", "KSTREAM-SOURCE"]


def test_a_pattern_with_an_extractor_is_warned_of() -> None:
    def timed(builder: ks.StreamsBuilder) -> None:
        read(builder, re.compile("a.*"), timestamp_extractor=ks.WallclockTimestampExtractor).to("out")

    assert said(timed, SHARES) == ["KSTREAM-SOURCE"]
