"""Which topics are cut into steps together: those whose tasks depend on each other, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.program import program_of
from kstreams.runtime.spark.settings import SparkSettings

pytestmark = pytest.mark.spark

TOGETHER = Admission(("a", "b"))


def admissions(tmp_path: Path, build: Callable[[ks.StreamsBuilder], Any], **given: Any) -> list[Admission]:
    builder = ks.StreamsBuilder()
    build(builder)
    config, topology = Config.of({"application.id": "app", **given}), builder.build()
    existing = dict.fromkeys("abc", 2)
    layout = lay_out(topology, "app", existing)
    program = program_of(topology, config, SparkSettings.of(config), layout, existing, str(tmp_path))
    return program.admissions(program.tasks.keys())


def read(builder: ks.StreamsBuilder, topic: str, **given: Any) -> ks.KStream:
    return builder.stream(topic, key=str, value=str, **given)


def both(left: str, right: str) -> str:
    return left + right


def its_value(key: str, value: str) -> str:
    return value


def test_partition_numbers_are_cut_for_themselves_where_nothing_is_repartitioned(tmp_path: Path) -> None:
    def joined(builder: ks.StreamsBuilder) -> None:
        table = builder.table("b", key=str, value=str)
        read(builder, "a").join(table, both).to("out")

    assert admissions(tmp_path, joined) == [Admission(("a", "b"), across_partitions=False)]


def test_a_repartition_topic_couples_all_partitions_of_what_feeds_it_and_what_reads_it(tmp_path: Path) -> None:
    def rekeyed(builder: ks.StreamsBuilder) -> None:
        table = builder.table("b", key=str, value=str)
        turned = read(builder, "a").select_key(lambda key, value: value, key=str)
        turned.join(table, both).to("out")
        read(builder, "c").group_by_key().count().to_stream().to("counts", value=int)

    assert admissions(tmp_path, rekeyed) == [TOGETHER, Admission(("c",), across_partitions=False)]


def test_topics_that_the_topology_writes_and_reads_couple_too(tmp_path: Path) -> None:
    def through(builder: ks.StreamsBuilder) -> None:
        read(builder, "a").to("b")
        read(builder, "b").to("out")
        read(builder, "c").to("out")

    assert admissions(tmp_path, through) == [Admission(("a",)), Admission(("c",), across_partitions=False)]


def test_foreign_keys_couple_both_tables(tmp_path: Path) -> None:
    def foreign(builder: ks.StreamsBuilder) -> None:
        left, right = (builder.table(topic, key=str, value=str) for topic in "ab")
        left.join(right, both, foreign_key=lambda value: value).to_stream().to("out")

    assert admissions(tmp_path, foreign) == [TOGETHER]


def test_global_tables_couple_nothing(tmp_path: Path) -> None:
    def looked_up(builder: ks.StreamsBuilder) -> None:
        table = builder.global_table("b", key=str, value=str)
        read(builder, "a").join(table, both, key_selector=its_value).to("out")

    assert admissions(tmp_path, looked_up) == [Admission(("a",), across_partitions=False)]


def own_time(record: Any, partition_time: int) -> int:
    return int(record.value)


@pytest.mark.parametrize(
    ("extractor", "by_time"),
    [
        (None, True),
        (ks.FailOnInvalidTimestamp(), True),
        (ks.LogAndSkipOnInvalidTimestamp, True),
        (ks.UsePartitionTimeOnInvalidTimestamp(), True),
        (ks.WallclockTimestampExtractor(), False),
        (own_time, False),
    ],
)
def test_only_times_that_the_log_knows_are_cut_by(tmp_path: Path, extractor: Any, by_time: bool) -> None:
    def merged(builder: ks.StreamsBuilder) -> None:
        read(builder, "a", timestamp_extractor=extractor).merge(read(builder, "b")).to("out")
        read(builder, "c").to("out")

    found = admissions(tmp_path, merged)
    assert found == [Admission(("a", "b"), False, by_time), Admission(("c",), False, True)]


def test_the_default_extractor_of_the_application_counts(tmp_path: Path) -> None:
    settings = {"default.timestamp.extractor": own_time}
    assert admissions(tmp_path, lambda builder: read(builder, "a").to("out"), **settings) == [
        Admission(("a",), False, False)
    ]
