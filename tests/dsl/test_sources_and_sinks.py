"""Where records enter and leave: event times, splits, prints, chosen topics, partitioners."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

import kstreams as ks
from kstreams.errors import ConfigError, ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver
from tests.dsl.driven import run

TEXTS = {"key": str, "value": str}
ROWS = [("k", "a", 5), ("k", "b", -1), ("k", "c", 3)]


def copied(**source):
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS, **source).to("out")
    return builder


# event times


def times(extractor, rows=ROWS):
    return [(value, time) for _, value, time in run(copied(timestamp_extractor=extractor), rows)]


def test_a_negative_time_fails_by_default():
    with pytest.raises(
        ProcessingError, match=r"stream\(\) at .*KSTREAM-SOURCE-0000000000.*in-0@1.*its time is negative"
    ):
        times(None)
    with pytest.raises(ProcessingError):
        times(ks.FailOnInvalidTimestamp)


def test_a_negative_time_may_be_skipped():
    assert times(ks.LogAndSkipOnInvalidTimestamp) == [("a", 5), ("c", 3)]


def test_a_negative_time_may_be_the_highest_before_it():
    assert times(ks.UsePartitionTimeOnInvalidTimestamp()) == [("a", 5), ("b", 5), ("c", 3)]


def test_partition_time_must_be_known():
    with pytest.raises(ProcessingError, match="its time is negative"):
        times(ks.UsePartitionTimeOnInvalidTimestamp, ROWS[1:])


def test_the_wall_clock_may_tell_the_time():
    builder = copied(timestamp_extractor=ks.WallclockTimestampExtractor)
    with TopologyTestDriver(builder.build(), start_ms=100) as driver:
        topic, out = driver.create_input_topic("in", **TEXTS), driver.create_output_topic("out", **TEXTS)
        topic.pipe_input("k", "a", 7)
        driver.advance_wall_clock_time(20)
        topic.pipe_input("k", "b", 7)
        assert [record.timestamp for record in out.read_records()] == [100, 120]


def test_ones_own_extractor_sees_record_and_partition_time_and_drops_by_a_negative_time():
    seen = []

    def extract(record, partition_time):
        seen.append((record.value, record.timestamp, partition_time))
        return {"a": 40, "b": -1, "c": 30}[record.value]

    assert times(extract) == [("a", 40), ("c", 30)]
    assert seen == [("a", 5, -1), ("b", -1, 40), ("c", 3, 40)]


@pytest.mark.parametrize(
    "setting",
    [
        ks.LogAndSkipOnInvalidTimestamp,
        "LogAndSkipOnInvalidTimestamp",
        "org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp",
    ],
)
def test_the_default_extractor_may_be_a_class_or_a_name(setting):
    assert len(run(copied(), ROWS, {"default.timestamp.extractor": setting})) == 2
    builder = ks.StreamsBuilder({"default.timestamp.extractor": setting})
    builder.stream("in", **TEXTS).to("out")
    assert len(run(builder, ROWS)) == 2


def test_a_repartition_topic_is_read_by_its_own_times_whatever_the_default():
    builder = ks.StreamsBuilder({"default.timestamp.extractor": lambda record, partition_time: record.timestamp + 100})
    builder.stream("in", **TEXTS).repartition().to("out")
    assert run(builder, [("k", "a", 5)]) == [("k", "a", 105)]


def test_what_is_no_extractor_is_refused():
    with pytest.raises(ConfigError, match=r"'soon' is no timestamp extractor: .*WallclockTimestampExtractor"):
        copied(timestamp_extractor="soon")


# where to begin


@pytest.mark.parametrize("reset", ["earliest", "latest", "none", timedelta(hours=1), "by_duration:P1DT2H", None])
def test_an_offset_reset_is_a_word_or_a_duration(reset):
    assert copied(offset_reset=reset).build()


@pytest.mark.parametrize("reset", ["soon", timedelta(seconds=-1), "by_duration:", "by_duration:P", 5])
def test_other_offset_resets_are_refused(reset):
    with pytest.raises(ConfigError, match="offset_reset cannot be"):
        copied(offset_reset=reset)


def test_a_topic_cannot_be_read_with_two_resets():
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS, offset_reset="latest")
    builder.stream("in", **TEXTS)
    with pytest.raises(TopologyError, match="different offset_reset"):
        builder.build()


def test_several_topics_and_patterns_are_one_stream():
    builder = ks.StreamsBuilder()
    builder.stream(["in", "more"], **TEXTS).merge(builder.stream(re.compile("other-.*"), **TEXTS)).to("out")
    rows = [("in", "k", "a", 1), ("more", "k", "b", 2), ("other-x", "k", "c", 3), ("other-y", "k", "d", 4)]
    assert [value for _, value, _ in run(builder, rows)] == ["a", "b", "c", "d"]


# splits


def split(**options):
    builder = ks.StreamsBuilder()
    return builder, builder.stream("in", **TEXTS).split(name="by-"), options


def test_a_branch_given_to_a_function_stands_in_the_result_as_what_it_returns():
    builder, forks, _ = split()
    branches = (
        forks.branch(lambda k, v: v == "a", name="a", function=lambda stream: stream.map_values(lambda v: v * 2))
        .branch(lambda k, v: v == "b", function=lambda stream: None)
        .default_branch(name="rest")
    )
    assert list(branches) == ["by-a", "by-rest"]
    branches["by-a"].to("out", **TEXTS)
    assert run(builder, [("k", "a", 1), ("k", "b", 2), ("k", "c", 3)]) == [("k", "aa", 1)]


def test_a_branch_given_to_a_consumer_does_not_stand_in_the_result():
    builder, forks, _ = split()
    branches = (
        forks.branch(lambda k, v: v == "a", consumer=lambda stream: stream.to("out"))
        .branch(lambda k, v: v == "b")
        .default_branch(consumer=lambda stream: stream.map_values(str.upper, value=str).to("out"))
    )
    assert list(branches) == ["by-2"]
    assert [value for _, value, _ in run(builder, [("k", "a", 1), ("k", "b", 2), ("k", "c", 3)])] == ["a", "C"]


def test_a_branch_has_a_function_or_a_consumer():
    _, forks, _ = split()
    with pytest.raises(TopologyError, match=r"test_sources_and_sinks.py:\d+ has a function= and a consumer="):
        forks.branch(lambda k, v: True, function=lambda stream: stream, consumer=lambda stream: None)


def test_a_record_goes_the_first_way_that_holds_or_nowhere():
    builder, forks, _ = split()
    branches = forks.branch(lambda k, v: v < "c").branch(lambda k, v: v < "d").no_default_branch()
    assert list(branches) == ["by-1", "by-2"]
    for name, branch in branches.items():
        branch.map_values(lambda v, name=name: f"{name}{v}", value=str).to("out")
    assert [value for _, value, _ in run(builder, [("k", v, 1) for v in "acz"])] == ["by-1a", "by-2c"]


# prints


def test_a_print_is_labelled_by_its_stream_and_shown_as_asked(capsys, tmp_path):
    builder = ks.StreamsBuilder()
    words = builder.stream("in", **TEXTS)
    words.print()
    words.print(label="seen", mapper=lambda key, value: f"{value} of {key}")
    words.print(file=tmp_path / "words.txt", label="kept")
    words.to("out")
    run(builder, [("k", "a", 1), ("k", None, 2)])
    assert capsys.readouterr().out.splitlines() == [
        "[KSTREAM-SOURCE-0000000000]: k, a",
        "[seen]: a of k",
        "[KSTREAM-SOURCE-0000000000]: k, None",
        "[seen]: None of k",
    ]
    assert (tmp_path / "words.txt").read_text() == "[kept]: k, a\n[kept]: k, None\n"


# chosen topics


def test_a_topic_chosen_by_record_may_look_at_all_of_it():
    seen = []

    def choose(key, value, context):
        seen.append((key, value, context.topic, context.partition, context.offset, context.timestamp, context.headers))
        return f"to-{value}"

    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).to(choose)
    with TopologyTestDriver(builder.build()) as driver:
        topic = driver.create_input_topic("in", **TEXTS)
        topic.pipe_record(ks.Record(key="k", value="a", timestamp=5, headers=[("h", b"1")]))
        topic.pipe_record(ks.Record(key="k", value="b", timestamp=6))
        assert driver.produced_topic_names() == {"to-a", "to-b"}
        assert driver.create_output_topic("to-b", **TEXTS).read_value() == "b"
    assert seen == [("k", "a", "in", 0, 0, 5, (("h", b"1"),)), ("k", "b", "in", 0, 1, 6, ())]


@pytest.mark.parametrize("chosen", [None, 5])
def test_what_is_chosen_as_topic_must_be_a_name(chosen):
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).to(lambda key, value, record: chosen)
    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(ProcessingError, match=rf"KSTREAM-SINK-.* it must choose the name of a topic, not {chosen}"),
    ):
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", 0)
