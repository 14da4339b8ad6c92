"""Idle input: what waits for stream time comes out as the wall clock goes on, where a source says so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.processor.task.task_time import limit_of
from kstreams.testing import TopologyTestDriver

TUMBLING = ks.TimeWindows(size=100, grace=0)
ON_CLOSE = ks.EmitStrategy.ON_WINDOW_CLOSE


def counts(builder: ks.StreamsBuilder, topic: str = "in", **source: Any) -> ks.KStream[Any, int]:
    """Final counts per window of 100 ms, keyed as "key@start"."""
    windowed = builder.stream(topic, key=str, value=str, **source).group_by_key().windowed_by(TUMBLING)
    return named(windowed.emit_strategy(ON_CLOSE).count().to_stream())


def named(stream: ks.KStream[Any, Any]) -> ks.KStream[str, Any]:
    return stream.select_key(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str)


class Driven:
    """A driver whose clock starts at 0, its inputs by topic and what came out of "out"."""

    def __init__(self, builder: ks.StreamsBuilder, value: type = int, **config: Any) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.driver = TopologyTestDriver(builder.build(), settings, start_ms=0)
        self.output = self.driver.create_output_topic("out", key=str, value=value)

    def pipe(self, key: str | None, value: str, time: int, topic: str = "in") -> list[tuple[str, Any]]:
        self.driver.create_input_topic(topic, key=str, value=str).pipe_input(key, value, time)
        return self.read()

    def wait(self, milliseconds: int) -> list[tuple[str, Any]]:
        self.driver.advance_wall_clock_time(milliseconds)
        return self.read()

    def read(self) -> list[tuple[str, Any]]:
        return [(record.key, record.value) for record in self.output.read_records()]


def test_by_default_event_time_alone_closes_windows() -> None:
    builder = ks.StreamsBuilder()
    counts(builder).to("out")
    driven = Driven(builder)
    assert driven.pipe("a", "x", 10) == []
    assert driven.wait(1_000_000) == []


@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_a_window_closes_once_its_end_is_passed_by_the_last_time_and_the_time_without_records(cache: int) -> None:
    builder = ks.StreamsBuilder()
    counts(builder, idle=timedelta(milliseconds=30)).to("out")
    driven = Driven(builder, statestore_cache_max_bytes=cache)
    driven.pipe("a", "x", 60)
    assert driven.wait(29) == []  # not idle yet
    assert driven.wait(10) == []  # idle: stream time is 60 + 39
    assert driven.wait(1) == [("a@0", 1)]
    assert driven.wait(500) == []  # once


def test_a_record_that_comes_for_a_window_closed_by_idleness_is_late() -> None:
    builder = ks.StreamsBuilder()
    counts(builder, idle=30).to("out")
    driven = Driven(builder)
    driven.pipe("a", "x", 60)
    assert driven.wait(60) == [("a@0", 1)]
    assert driven.pipe("a", "x", 61) == []
    assert driven.driver.dropped["KSTREAM-AGGREGATE-0000000002", "late: its window is closed"] == 1
    driven.pipe("a", "x", 130)
    assert driven.wait(100) == [("a@100", 1)]


def test_a_record_ends_idleness_and_the_wait_begins_anew() -> None:
    builder = ks.StreamsBuilder()
    counts(builder, idle=30).to("out")
    driven = Driven(builder)
    driven.pipe("a", "x", 60)
    driven.wait(20)
    driven.pipe("b", "x", 60)
    assert driven.wait(29) == []
    assert driven.wait(11) == [("a@0", 1), ("b@0", 1)]


def test_the_configuration_speaks_for_sources_that_say_nothing() -> None:
    builder = ks.StreamsBuilder()
    counts(builder).merge(counts(builder, "never", idle=-1)).to("out")
    driven = Driven(builder, idle_timeout_ms=30)
    driven.pipe("a", "x", 60)
    driven.pipe("b", "x", 60, "never")
    assert driven.wait(1_000) == [("a@0", 1)]


def test_suppressed_updates_and_their_windows_pass_time_together() -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str, idle=30).group_by_key().windowed_by(TUMBLING)
    named(grouped.count().suppress(ks.Suppressed.until_window_closes()).to_stream()).to("out")
    driven = Driven(builder)
    driven.pipe("a", "x", 60)
    assert driven.wait(39) == []
    assert driven.wait(1) == [("a@0", 1)]
    assert driven.pipe("a", "x", 61) == []  # late for the window, so that it has one final result


def test_an_update_suppressed_for_a_time_comes_out_when_that_has_passed() -> None:
    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str, idle=0)
    table.suppress(ks.Suppressed.until_time_limit(50)).to_stream().to("out")
    driven = Driven(builder, value=str)
    driven.pipe("a", "x", 60)
    assert driven.wait(49) == []
    assert driven.wait(1) == [("a", "x")]


def test_a_record_that_waits_for_late_versions_of_a_table_is_joined() -> None:
    builder = ks.StreamsBuilder()
    history = ks.Materialized("rates", history_retention=1_000)
    rates = builder.table("rates", key=str, value=str, materialized=history, idle=0)
    stream = builder.stream("in", key=str, value=str, idle=0)
    stream.left_join(rates, lambda amount, rate: amount, grace=50).to("out", value=str)
    driven = Driven(builder, value=str)
    driven.pipe("a", "x", 60)
    assert driven.wait(49) == []
    assert driven.wait(1) == [("a", "x")]


def test_sessions_end() -> None:
    builder = ks.StreamsBuilder()
    visits = builder.stream("in", key=str, value=str, idle=10).group_by_key()
    sessions = visits.windowed_by(ks.SessionWindows(gap=50, grace=0)).emit_strategy(ON_CLOSE)
    named(sessions.count().to_stream()).to("out")
    driven = Driven(builder)
    driven.pipe("a", "x", 60)
    driven.pipe("a", "x", 80)
    assert driven.wait(50) == []
    assert driven.wait(1) == [("a@60", 2)]


def test_sliding_windows_close() -> None:
    builder = ks.StreamsBuilder()
    visits = builder.stream("in", key=str, value=str, idle=10).group_by_key()
    windows = visits.windowed_by(ks.SlidingWindows(difference=50, grace=0)).emit_strategy(ON_CLOSE)
    named(windows.count().to_stream()).to("out")
    driven = Driven(builder)
    driven.pipe("a", "x", 60)
    assert driven.wait(9) == []
    assert driven.wait(1_000) == [("a@10", 1)]


def outer_join(left_idle: int | None, right_idle: int | None) -> Driven:
    builder = ks.StreamsBuilder()
    left = builder.stream("left", key=str, value=str, idle=left_idle)
    right = builder.stream("right", key=str, value=str, idle=right_idle)
    windows = ks.JoinWindows(before=20, after=20, grace=0)
    left.outer_join(right, lambda a, b: f"{a}+{b}", windows=windows).to("out", value=str)
    return Driven(builder, value=str)


def test_rows_of_an_outer_join_without_a_partner_come_out() -> None:
    driven = outer_join(10, 30)
    driven.pipe("a", "x", 60, "left")
    assert driven.wait(20) == []
    assert driven.wait(15) == [("a", "x+None")]
    assert driven.wait(1_000) == []


def test_a_source_that_is_never_idle_holds_its_join_back() -> None:
    driven = outer_join(10, None)
    driven.pipe("a", "x", 60, "left")
    assert driven.wait(1_000_000) == []


def test_a_source_with_records_holds_its_join_back() -> None:
    driven = outer_join(10, 30)
    driven.pipe("a", "x", 60, "left")
    for _ in range(10):
        driven.wait(25)
        assert driven.pipe("b", "y", 60, "right") == []


def test_time_passes_through_repartition_topics() -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str, idle=30).group_by(lambda _, value: value, key=str)
    named(grouped.windowed_by(TUMBLING).emit_strategy(ON_CLOSE).count().to_stream()).to("out")
    driven = Driven(builder)
    driven.pipe("a", "x", 60)
    assert driven.wait(40) == [("x@0", 1)]


def test_processors_see_stream_time_pass() -> None:
    class Ticker(ks.Processor[str, str, str, int]):
        def init(self, context: Any) -> None:
            self.context = context
            context.schedule(100, ks.PunctuationType.STREAM_TIME, self.tick)

        def tick(self, time_ms: int) -> None:
            self.context.forward(ks.Record(key="tick", value=time_ms, timestamp=time_ms))

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str, idle=30).process(Ticker, key=str, value=int).to("out")
    driven = Driven(builder)
    assert driven.pipe("a", "x", 60) == [("tick", 60)]
    assert driven.wait(39) == []
    assert driven.wait(11) == [("tick", 110)]


def test_nothing_passes_before_the_first_record() -> None:
    builder = ks.StreamsBuilder()
    counts(builder, idle=0).to("out")
    driven = Driven(builder)
    driven.wait(1_000)
    driven.pipe("a", "x", 10)
    assert driven.wait(89) == []
    assert driven.wait(1) == [("a@0", 1)]


def test_an_internal_topic_waits_for_the_slowest_of_those_that_feed_it() -> None:
    builder = ks.StreamsBuilder()
    slow, fast = (builder.stream(name, key=str, value=str, idle=idle) for name, idle in (("slow", 70), ("fast", 20)))
    slow.merge(fast).group_by(lambda _, value: value, key=str).count().to_stream().to("out")
    sources = {source.topics[0]: source for part in builder.build().sub_topologies for source in part.sources}
    default_ms = Config.of({"application.id": "a"})["idle.timeout.ms"]
    internal = next(source for name, source in sources.items() if name.endswith("repartition"))
    assert [limit_of(sources["slow"], default_ms), limit_of(internal, default_ms)] == [70, 70]


def test_one_topic_has_one_idle_time() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str, idle=5).to("out")
    builder.stream("in", key=str, value=str).to("out")
    with pytest.raises(TopologyError, match="different idle"):
        builder.build()
