"""Errors name the operator, the user's line, and what to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kstreams as ks
from kstreams import expressions
from kstreams.errors import TopologyError


def words(builder):
    return builder.stream("in", key=str, value=str)


def line_of(marker):
    """The line of this file that ends with a comment."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))


def test_an_unknown_type_is_told_where_bytes_are_needed_and_where_it_was_lost():
    builder = ks.StreamsBuilder()
    lost = words(builder).map_values(lambda v: v)  # lost here
    lost.to("out")  # needed here
    with pytest.raises(TopologyError) as error:
        builder.build()
    text = str(error.value)
    assert re.match(rf"to\(\) at .*test_errors.py:{line_of('needed here')} \(KSTREAM-SINK-0000000002\)", text)
    assert "unknown since map_values() at " in text
    assert f"test_errors.py:{line_of('lost here')} (KSTREAM-MAPVALUES-0000000001)" in text
    assert "write value=<type> at to(), or annotate what the function of map_values() returns" in text


def test_a_source_without_types_says_what_to_write():
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str)
    with pytest.raises(TopologyError, match=r"stream\(\) at .* the type of its value .* write value=<type>"):
        builder.build()


def test_types_are_not_needed_between_two_places_that_need_bytes():
    builder = ks.StreamsBuilder()
    words(builder).map_values(lambda v: v).filter(lambda k, v: v).map_values(len, value=int).to("out")
    assert len(builder.build().nodes) == 5


def test_a_type_without_a_serde_is_told_with_the_operator():
    builder = ks.StreamsBuilder()
    with pytest.raises(TopologyError, match=r"map_values\(\) at .*\(KSTREAM-MAPVALUES-0000000001\) cannot use value="):
        words(builder).map_values(lambda v: v, value=dict[str, int] | dict[int, int]).to("out")


def test_topics_that_overlap_but_are_not_the_same_are_told_with_both_lines():
    builder = ks.StreamsBuilder()
    builder.stream(["a", "b"], key=str, value=str)
    builder.stream(["b", "c"], key=str, value=str)
    with pytest.raises(TopologyError, match=r"reads topic 'b', which stream\(\) at .* \(KSTREAM-SOURCE-0000000000\)"):
        builder.build()


def test_a_topic_is_either_a_stream_or_a_table():
    builder = ks.StreamsBuilder()
    builder.stream("a", key=str, value=str)
    builder.table("a", key=str, value=str)
    with pytest.raises(TopologyError, match="reads topic 'a'"):
        builder.build()


def test_streams_of_the_same_topic_agree_on_where_to_start():
    builder = ks.StreamsBuilder()
    builder.stream("a", key=str, value=str, offset_reset="latest")
    builder.stream("a", key=str, value=str)
    with pytest.raises(TopologyError, match="different offset_reset"):
        builder.build()


def test_a_stream_has_a_topic():
    with pytest.raises(TopologyError, match=r"stream\(\) at .* no topic"):
        ks.StreamsBuilder().stream([])


def test_a_global_table_cannot_be_versioned():
    with pytest.raises(TopologyError, match="cannot be versioned"):
        ks.StreamsBuilder().global_table("a", materialized=ks.Materialized(history_retention=1))


def test_windows_are_kept_at_least_until_they_close():
    windowed = words(ks.StreamsBuilder()).group_by_key().windowed_by(ks.TimeWindows(size=100, grace=50))
    with pytest.raises(TopologyError, match="150 ms at least"):
        windowed.count(ks.Materialized("counts", retention=149))


def test_unlimited_windows_never_close():
    windowed = words(ks.StreamsBuilder()).group_by_key().windowed_by(ks.UnlimitedWindows())
    with pytest.raises(ValueError, match="never close"):
        windowed.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)


@pytest.mark.parametrize("arguments", [(), (int,), (None, lambda k, v, a: a)])
def test_an_aggregation_is_given_two_functions_or_expressions(arguments):
    with pytest.raises(TopologyError, match=r"aggregate\(\) at .*test_errors.py:\d+ takes either"):
        words(ks.StreamsBuilder()).group_by_key().aggregate(*arguments)


def test_an_expression_that_cannot_be_is_told_with_the_operator():
    builder = ks.StreamsBuilder()
    words(builder).map_values(expressions.col("field")).to("out")
    with pytest.raises(TopologyError, match=r"map_values\(\) at .* \(KSTREAM-MAPVALUES-0000000001\)"):
        builder.build()
