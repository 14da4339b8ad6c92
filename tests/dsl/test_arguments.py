"""What cannot stand where the user put it is refused when it is declared, with the operator and what it takes."""

from __future__ import annotations

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
    "a text as strategy": (
        lambda: numbers().group_by_key().windowed_by(ks.TimeWindows(size=10)).emit_strategy("on close").count(),
        "EmitStrategy as emit, not 'on close'",
    ),
    "a predicate of a branch": (
        lambda: numbers().split().branch("x").no_default_branch(),
        "several of a function or an expression as predicates",
    ),
}


@pytest.mark.parametrize(("declare", "message"), NOT_WHAT_IT_TAKES.values(), ids=NOT_WHAT_IT_TAKES)
def test_what_an_operator_does_not_take_is_refused_at_once(declare, message):
    with pytest.raises(TopologyError, match=r"\(declared at .*test_arguments.py:\d+\) takes ") as error:
        declare()
    assert message in str(error.value)


def test_two_operators_cannot_keep_stores_of_one_name():
    builder = ks.StreamsBuilder()
    numbers("a", builder).group_by_key().count("total")
    numbers("b", builder).group_by_key().count("total")
    with pytest.raises(TopologyError, match=r"-0000000003 \(declared at .* keeps a store 'total', as .*-0000000001 \("):
        builder.build()


def test_a_table_with_a_history_cannot_be_suppressed():
    builder = ks.StreamsBuilder()
    kept = table("t", builder, materialized=ks.Materialized("kept", history_retention=100))
    kept.filter(lambda key, value: True).suppress(ks.Suppressed.until_time_limit(5))
    with pytest.raises(TopologyError, match=r"KTABLE-SUPPRESS-.* cannot hold back a table with a history"):
        builder.build()
