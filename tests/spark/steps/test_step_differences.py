"""`explain` says of which operators steps change the results, and of no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.step_differences import AFTER_OTHERS, SHARES

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


@pytest.mark.parametrize("build", [rekeyed, joined])
def test_steps_change_nothing_where_one_clock_cuts_all_input(build: Callable[[ks.StreamsBuilder], Any]) -> None:
    assert said(build, SHARES) == said(build, AFTER_OTHERS) == []


def test_a_repartition_topic_beside_another_one_is_warned_of_at_the_operator() -> None:
    assert said(rekeyed_and_joined, AFTER_OTHERS) == ["KSTREAM-JOIN", "KTABLE-SOURCE"]


def test_what_was_repartitioned_twice_is_warned_of_at_the_operator() -> None:
    def twice(builder: ks.StreamsBuilder) -> None:
        once = read(builder, "a").group_by(lambda key, value: value, key=str).count()
        once.group_by(lambda key, count: (count, key), key=int, value=str).count().to_stream().to("out")

    assert said(twice, AFTER_OTHERS) == ["KTABLE-AGGREGATE"]


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
