"""`ks.header`, `ks.headers`, `ks.topic`, `ks.partition` and `ks.offset`, wherever a stream takes an expression."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.kernel.batch import Row
from kstreams.serdes import IntSerde
from kstreams.testing import TopologyTestDriver
from tests.columns.both_paths import assert_same
from tests.support.examples import examples

Stream = ks.KStream[str, str]
INPUT: list[tuple[str, list[tuple[str, bytes | None]]]] = [
    ("one", [("n", b"1"), ("to", b"odd")]),
    ("two", [("n", b"7"), ("n", b"2"), ("to", b"even")]),
    ("none", []),
    ("null", [("n", None)]),
    ("text", [("n", b"many")]),
    ("damaged", [("n", b"\xff")]),
]


def written(say: Callable[[Stream], Any], kind: Any = str, topic: str = "out") -> list[tuple[Any, Any]]:
    """Key and value of what comes out for `INPUT`."""
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    say(builder.stream("in", key=str, value=str))
    with TopologyTestDriver(builder.build(), {"statestore.cache.max.bytes": 0}) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        for at, (value, headers) in enumerate(INPUT):
            source.pipe_input("k", value, at, headers)
        return driver.create_output_topic(topic, key=str, value=kind).read_key_values()


def values(say: Callable[[Stream], Any], kind: Any = str, topic: str = "out") -> list[Any]:
    return [value for _, value in written(say, kind, topic)]


def test_the_last_header_of_a_name_is_text_and_null_where_it_is_none() -> None:
    found = values(lambda s: s.map_values(ks.header("n").fill_null("-")).to("out"))
    assert found == ["1", "2", "-", "-", "many", "-"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (int, [1, 2, None, None, None, None]),
        (float, [1.0, 2.0, None, None, None, None]),
        (bool, [None] * 6),
        (bytes, [b"1", b"2", None, None, b"many", b"\xff"]),
    ],
)
def test_a_header_is_read_as_a_type_and_is_null_where_it_does_not_fit(kind: Any, expected: list[Any]) -> None:
    assert values(lambda s: s.map_values(ks.header("n", type=kind)).to("out"), kind) == expected


@pytest.mark.parametrize(("raw", "number"), [(b"9223372036854775807", 2**63 - 1), (b"9223372036854775808", None)])
def test_an_integer_of_a_header_has_64_bits(raw: bytes, number: int | None) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(ks.header("n", type=int)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", 0, [("n", raw)])
        assert driver.create_output_topic("out", key=str, value=int).read_key_values() == [("k", number)]


def test_a_serde_reads_the_bytes_that_another_client_has_written() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(ks.header("n", type=IntSerde()) + 1).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        source.pipe_input("k", "v", 0, [("n", IntSerde().serialize(41))])
        source.pipe_input("k", "v", 0, [("n", b"short")])
        found = driver.create_output_topic("out", key=str, value=int).read_key_values()
    assert found == [("k", 42), ("k", None)]


def test_filters_keys_and_branches_by_headers() -> None:
    assert values(lambda s: s.filter(ks.header("n", type=int) > 1).to("out")) == ["two"]
    assert values(lambda s: s.filter_not(ks.header("n").is_null()).to("out")) == ["one", "two", "text"]
    keyed = written(lambda s: s.select_key(ks.header("to").fill_null("?")).to("out"))
    assert [key for key, _ in keyed] == ["odd", "even", "?", "?", "?", "?"]

    def split(stream: Stream) -> None:
        branches = stream.split(name="by-").branch(ks.header("to") == "odd", name="odd").default_branch(name="rest")
        branches["by-odd"].to("out")

    assert values(split) == ["one"]


def test_the_topic_that_a_record_is_written_to_by_a_header() -> None:
    assert values(lambda s: s.to(ks.header("to").fill_null("lost")), topic="even") == ["two"]


def test_where_the_input_record_came_from() -> None:
    place = ks.struct(topic=ks.topic, partition=ks.partition, offset=ks.offset, at=ks.timestamp)
    found = values(lambda s: s.filter(ks.offset % 2 == 1).map_values(place, value=dict).to("out"), dict)
    assert found == [{"topic": "in", "partition": 0, "offset": at, "at": at} for at in (1, 3, 5)]


def test_all_headers_as_a_value() -> None:
    found = values(lambda s: s.filter(ks.offset < 1).map_values(ks.struct(all=ks.headers)).to("out"), dict)
    assert found == [{"all": [["n", "MQ=="], ["to", "b2Rk"]]}]


def test_aggregates_of_headers_and_offsets() -> None:
    def say(stream: Stream) -> None:
        grouped = stream.group_by(ks.header("to").fill_null("?"))
        sums = grouped.aggregate(n=ks.header("n", type=int).sum(), topics=ks.topic.n_unique(), last=ks.offset.last())
        sums.to_stream().to("out")

    found = dict(written(say, dict))
    assert found["odd"] == {"n": 1, "topics": 1, "last": 0}
    assert found["even"] == {"n": 2, "topics": 1, "last": 1}
    assert found["?"] == {"n": None, "topics": 1, "last": 5}


@pytest.mark.parametrize(
    "windows",
    [ks.TimeWindows(size=10), ks.SlidingWindows(difference=10, grace=5), ks.SessionWindows(gap=10)],
    ids=lambda windows: type(windows).__name__,
)
def test_aggregates_of_headers_by_window(windows: Any) -> None:
    def say(stream: Stream) -> None:
        counted = stream.group_by_key().windowed_by(windows).aggregate(n=ks.header("n", type=int).sum())
        counted.to_stream().select_key(ks.key).to("out")

    assert {"n": 3} in values(say, dict)


def test_there_is_no_input_record_behind_a_punctuator() -> None:
    class Tick(ks.Processor[str, str, str, str]):
        def init(self, context: ks.ProcessorContext[str, str]) -> None:
            self.context = context
            context.schedule(1_000, ks.PunctuationType.WALL_CLOCK_TIME, self.tick)

        def process(self, record: ks.Record[str, str]) -> None:
            """Only time counts."""

        def tick(self, time: int) -> None:
            self.context.forward(ks.Record(key="tick", value="t", timestamp=0))

    builder = ks.StreamsBuilder()
    ticks = builder.stream("in", key=str, value=str).process(Tick, key=str, value=str)
    place = ks.struct(topic=ks.topic, partition=ks.partition, offset=ks.offset, header=ks.header("n"))
    ticks.map_values(place, value=dict).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.advance_wall_clock_time(1_000)
        (record,) = driver.create_output_topic("out", key=str, value=dict).read_records()
    assert record.value == {"topic": None, "partition": None, "offset": None, "header": None}


MISTAKES: list[tuple[Callable[[Stream], Any], str]] = [
    (lambda s: s.map_values(ks.header("n") + 1).to("out"), "needs numbers or two texts, not str and int"),
    (lambda s: s.filter(ks.offset == "1").to("out"), "cannot compare these"),
    (lambda s: s.to_table().filter(ks.topic == "in").to_stream().to("out"), "ks.topic cannot be used here"),
    (lambda s: s.map_values(ks.header("n").cast(datetime)).to("out"), "write a function"),
]


@pytest.mark.parametrize(("say", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_what_does_not_fit_is_said_when_the_topology_is_built(say: Callable[[Stream], Any], sentence: str) -> None:
    def build() -> None:
        builder = ks.StreamsBuilder()
        say(builder.stream("in", key=str, value=str))
        builder.build()

    with pytest.raises(TopologyError, match=sentence):
        build()


@pytest.mark.parametrize("wrong", [1, None, b"n"])
def test_the_name_of_a_header_is_text(wrong: Any) -> None:
    with pytest.raises(TypeError, match="takes the name of a header"):
        ks.header(wrong)


@pytest.mark.parametrize("wrong", [dict, datetime, IntSerde, "int"])
def test_the_type_of_a_header_is_one_that_text_gives_or_a_serde(wrong: Any) -> None:
    with pytest.raises(TypeError, match="takes type=str, bytes, int, float, bool or a serde, not"):
        ks.header("n", type=wrong)


# ---- columns

raw_headers = st.lists(st.tuples(st.sampled_from("nm"), st.sampled_from([None, b"1", b"-4", b"x", b"\xff", b"2.5"])))
rows = st.builds(Row, st.just(b"k"), st.sampled_from([b"a", b"b", None]), st.integers(0, 50), raw_headers.map(tuple))
plain_rows = st.builds(Row, st.just(b"k"), st.just(b"a"), st.integers(0, 50), st.just(()))
batches = st.lists(st.lists(rows, min_size=1, max_size=6) | st.lists(plain_rows, min_size=1, max_size=6), max_size=4)
number = ks.header("n", type=int)
uses: dict[str, Callable[[ks.KStream[str, str]], Any]] = {
    "filter": lambda s: s.filter((number > 0) | (ks.offset % 3 == 0)).to("out"),
    "value": lambda s: s.map_values(ks.topic + ks.header("n").fill_null("-") + ks.offset.cast(str)).to("out"),
    "number": lambda s: s.map_values(number + ks.partition).to("out"),
    "key": lambda s: s.select_key(ks.header("m", type=bytes)).to("out"),
    "fraction": lambda s: s.filter(ks.header("n", type=float) > 1.5).map_values(ks.header("n")).to("out"),
    "aggregate": lambda s: s.group_by_key().aggregate(n=number.sum(), at=ks.offset.max()).to_stream().to("out"),
}


@pytest.mark.parametrize("use", uses.values(), ids=uses)
@settings(max_examples=examples(60), deadline=None)
@given(batches)
def test_columns_give_the_same(use: Callable[[ks.KStream[str, str]], Any], read: list[list[Row]]) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
        use(builder.stream("in", key=str, value=str))
        return builder.build()

    assert_same(build, read)
