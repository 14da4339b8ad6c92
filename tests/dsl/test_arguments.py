"""What cannot stand where the user put it is refused when it is declared, with the operator and what it takes."""

from __future__ import annotations

import re

import pytest

import kstreams as ks
from kstreams.errors import TopologyError


def numbers(topic="in", builder=None):
    return (builder or ks.StreamsBuilder()).stream(topic, key=str, value=int)


def table(topic="table", builder=None, **options):
    return (builder or ks.StreamsBuilder()).table(topic, key=str, value=int, **options)


def add(a, b):
    return a + b


def no_joiner():
    builder = ks.StreamsBuilder()
    numbers(builder=builder).join(table(builder=builder), None)


NOT_WHAT_IT_TAKES = {
    "a text as predicate": (lambda: numbers().filter("x > 3"), "a function or an expression as predicate, not 'x > 3'"),
    "no function": (lambda: numbers().map_values(None), "a function or an expression as function, not None"),
    "one expression for two": (lambda: numbers().map(ks.value), "a function or a pair of expressions as function"),
    "no selector": (lambda: numbers().group_by(None), "a function or an expression as function"),
    "one expression for a row": (lambda: table().group_by(ks.key), "a function or a pair of expressions as function"),
    "no topic": (lambda: numbers().to(None), "str or a function or an expression as topic"),
    "no joiner": (no_joiner, "a function or an expression as joiner"),
    "a value as initializer": (
        lambda: numbers().group_by_key().aggregate(0, add, value=int),
        "a function as initializer, not 0",
    ),
    "a number as reducer": (lambda: numbers().group_by_key().reduce(0), "a function as reducer, not 0"),
    "a predicate of a branch": (
        lambda: numbers().split().branch("x").no_default_branch(),
        "several of a function or an expression as predicates",
    ),
}


@pytest.mark.parametrize(("declare", "message"), NOT_WHAT_IT_TAKES.values(), ids=NOT_WHAT_IT_TAKES)
def test_what_an_operator_does_not_take_is_refused_at_once(declare, message):
    with pytest.raises(TopologyError, match=r"^\w+\(\) at .*test_arguments.py:\d+ \(K\S+\) takes ") as error:
        declare()
    assert message in str(error.value)


def test_two_operators_cannot_keep_stores_of_one_name():
    builder = ks.StreamsBuilder()
    numbers("a", builder).group_by_key().count("total")
    numbers("b", builder).group_by_key().count("total")
    with pytest.raises(
        TopologyError, match=r"count\(\) at .*-0000000003\) keeps a store 'total', as count\(\) at .*-0000000001\)"
    ):
        builder.build()


def test_a_table_with_a_history_cannot_be_suppressed():
    builder = ks.StreamsBuilder()
    kept = table("t", builder, materialized=ks.Materialized("kept", history_retention=100))
    kept.filter(lambda key, value: True).suppress(ks.Suppressed.until_time_limit(5))
    with pytest.raises(TopologyError, match=r"KTABLE-SUPPRESS-.* cannot hold back a table with a history"):
        builder.build()


def windowed(stream=None):
    return (stream or numbers()).group_by_key().windowed_by(ks.TimeWindows(size=10))


def joined(other, **options):
    """A stream joined with a stream, table or global table of the same builder."""
    builder = ks.StreamsBuilder()
    others = {"stream": builder.stream, "table": builder.table, "global table": builder.global_table}
    return numbers(builder=builder).join(others[other]("other", key=str, value=int), add, **options)


def a_table_with_a_stream():
    builder = ks.StreamsBuilder()
    table(builder=builder).left_join(numbers(builder=builder), add)


def a_cogroup_with_a_stream():
    builder = ks.StreamsBuilder()
    grouped = numbers("a", builder).group_by_key()
    grouped.cogroup(lambda key, value, total: total + value).cogroup(numbers("b", builder), add)


REFUSED = {
    "a text as strategy": (
        lambda: windowed().emit_strategy("on close"),
        "emit_strategy() at HERE takes EmitStrategy.ON_WINDOW_CLOSE or ON_WINDOW_UPDATE, not 'on close'",
    ),
    "merge with a table": (lambda: numbers().merge(table()), "merge() at HERE takes a KStream, not KTable("),
    "merge of two builders": (lambda: numbers().merge(numbers()), "which two StreamsBuilders declared"),
    "join of two builders": (lambda: numbers().join(table(), add), "which two StreamsBuilders declared"),
    "tables of two builders": (lambda: table().outer_join(table(), add), "outer_join() at HERE reads KTable("),
    "table with a stream": (a_table_with_a_stream, "left_join() at HERE takes a KTable, not KStream("),
    "cogroup with a stream": (a_cogroup_with_a_stream, "cogroup() at HERE takes a KGroupedStream, not KStream("),
    "join with a name": (
        lambda: numbers().join("other", add),
        "join() at HERE takes a KStream or KTable or GlobalKTable, not 'other'",
    ),
    "outer join with a table": (lambda: numbers().outer_join(table(), add), "outer_join() at HERE takes a KStream"),
    "no windows": (lambda: joined("stream"), "the join of two streams at HERE needs windows="),
    "other windows": (
        lambda: joined("stream", windows=ks.TimeWindows(size=5)),
        "takes JoinWindows as windows, not TimeWindows(",
    ),
    "no key selector": (lambda: joined("global table"), "the join with a global table at HERE needs key_selector="),
    "windows for a table": (
        lambda: joined("table", windows=ks.JoinWindows.of(5)),
        "the join at HERE is with a KTable, but windows= belongs to a join with a KStream",
    ),
    "a key selector for a table": (
        lambda: joined("table", key_selector=lambda key, value: key),
        "key_selector= belongs",
    ),
    "grace for a stream": (lambda: joined("stream", windows=ks.JoinWindows.of(5), grace=5), "grace= belongs"),
    "a negative grace": (
        lambda: joined("table", grace=-5),
        "the join at HERE cannot wait for a negative time: grace=-5",
    ),
    "no partitions": (lambda: numbers().repartition(partitions=0), "repartition() at HERE needs at least 1 partition"),
    "nothing to suppress by": (
        lambda: numbers().group_by_key().count().suppress(None),
        "suppress() at HERE takes Suppressed.until_window_closes()",
    ),
    "a history of windows": (
        lambda: windowed().count(ks.Materialized("counts", history_retention=5)),
        "windows at HERE keep no history",
    ),
    "a short retention": (
        lambda: windowed().count(ks.Materialized("counts", retention=5)),
        "5 ms at HERE is too short",
    ),
    "a rate per nothing": (lambda: windowed().rate(per=0), "rate() at HERE needs a unit of at least 1 ms, not 0 ms"),
    "a number as field": (lambda: numbers().group_by_key().aggregate(n=5), "as fields, such as n=ks.len(), not 5"),
    "a number as topic": (lambda: numbers(5), "stream() at HERE reads a topic, several or a pattern, not 5"),
}


@pytest.mark.parametrize(("declare", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_together_is_refused_with_the_users_line(declare, message):
    with pytest.raises(TopologyError) as error:
        declare()
    assert message in re.sub(r"at \S*test_arguments.py:\d+", "at HERE", str(error.value))


@pytest.mark.parametrize("bound", [{"max_records": -1}, {"max_bytes": "1 MB"}], ids=str)
def test_what_waits_is_bounded_by_whole_numbers(bound):
    with pytest.raises(ValueError, match=r"max_\w+ is a whole number that is not negative, not"):
        ks.Suppressed.until_time_limit(5, **bound)


@pytest.mark.parametrize("kept", [{"retention": -1}, {"history_retention": -1}], ids=str)
def test_nothing_is_kept_for_a_negative_time(kept):
    with pytest.raises(ValueError, match="retention must not be negative, but is -1 ms"):
        ks.Materialized("kept", **kept)


class Nothing(ks.Processor):
    pass


async def later(value):
    return value


MISTAKEN = {
    "one text as stores": (lambda: numbers().process(Nothing, stores="counts"), "write stores=['counts']"),
    "no store": (lambda: ks.StreamsBuilder().add_state_store("counts"), "takes what Stores makes, not 'counts'"),
    "no time for a call": (lambda: numbers().map_values(later, timeout=-5), "timeout=-5 leaves no time for a call"),
    "idle before it began": (
        lambda: ks.StreamsBuilder().stream("in", key=str, value=int, idle=-7),
        "the source at HERE cannot be idle after -7 ms",
    ),
}


@pytest.mark.parametrize(("declare", "message"), MISTAKEN.values(), ids=MISTAKEN)
def test_mistakes_that_would_do_nothing_are_told(declare, message):
    with pytest.raises(TopologyError) as error:
        declare()
    assert message in re.sub(r"at \S*test_arguments.py:\d+", "at HERE", str(error.value))


def test_a_misspelt_keyword_is_named():
    with pytest.raises(TypeError, match="unexpected keyword nmae: help"):
        numbers().filter(lambda key, value: True, nmae="keep")
