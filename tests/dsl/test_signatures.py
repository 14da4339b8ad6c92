"""Functions that cannot be called as an operator calls them are refused when they are declared, and only those."""

from __future__ import annotations

import functools
import re
from unittest import mock

import pytest

import kstreams as ks
from kstreams.errors import TopologyError


def stream():
    return ks.StreamsBuilder().stream("in", key=str, value=str)


def grouped():
    return stream().group_by_key()


def table():
    return ks.StreamsBuilder().table("t", key=str, value=str)


def joined(other, joiner, **options):
    builder = ks.StreamsBuilder()
    makers = {"stream": builder.stream, "table": builder.table, "global table": builder.global_table}
    return builder.stream("in", key=str, value=str).join(makers[other]("o", key=str, value=str), joiner, **options)


def tables(joiner, **options):
    builder = ks.StreamsBuilder()
    return builder.table("a", key=str, value=str).join(builder.table("b", key=str, value=str), joiner, **options)


def one(a):
    return a


def two(a, b):
    return a


def three(a, b, c):
    return a


async def later(a):
    return a


class Strict:
    def __init__(self, url):
        self.url = url

    def both(self, a, b):
        return a

    def __call__(self, a):
        return a


class NeedsUrl(ks.Processor):
    def __init__(self, url):
        self.url = url


REFUSED = {
    "filter": (lambda: stream().filter(one), "predicate(key, value), but the one it was given takes (a)"),
    "filter of a table": (lambda: table().filter(one), "predicate(key, value)"),
    "map": (lambda: stream().map(one), "function(key, value)"),
    "map_values": (lambda: stream().map_values(two), "function(value), but .* give with_key=True"),
    "with_key": (lambda: stream().map_values(one, with_key=True), "function(key, value), .* leave with_key=True out"),
    "map_values of a table": (lambda: table().map_values(two), "function(value)"),
    "flat_map": (lambda: stream().flat_map(one), "function(key, value)"),
    "flat_map_values": (lambda: stream().flat_map_values(two), "function(value)"),
    "select_key": (lambda: stream().select_key(one), "function(key, value)"),
    "group_by": (lambda: stream().group_by(one), "function(key, value)"),
    "group_by of a table": (lambda: table().group_by(one), "function(key, value)"),
    "peek": (lambda: stream().peek(one), "function(key, value)"),
    "foreach": (lambda: stream().foreach(three), "function(key, value)"),
    "print": (lambda: stream().print(mapper=one), "mapper(key, value)"),
    "branch": (lambda: stream().split().branch(one).no_default_branch(), "predicate(key, value)"),
    "map_batch": (lambda: stream().map_batch(two, value=str), "function(batch)"),
    "an async function": (lambda: stream().filter(later), "predicate(key, value)"),
    "topic": (lambda: stream().to(two), "topic(key, value, record)"),
    "partitioner": (lambda: stream().to("out", partitioner=two), "partitioner(topic, key, value, partitions)"),
    "reducer of three": (lambda: grouped().reduce(three), "reducer(aggregate, value), .* takes (a, b, c)"),
    "initializer": (lambda: grouped().aggregate(one, three), "initializer(), .* let it take no argument"),
    "aggregator": (lambda: grouped().aggregate(int, two), "aggregator(key, value, aggregate)"),
    "merger": (
        lambda: grouped().windowed_by(ks.SessionWindows(gap=5)).aggregate(int, three, merger=two),
        "merger(key, aggregate, other)",
    ),
    "cogroup": (lambda: grouped().cogroup(two).aggregate(int), "aggregator(key, value, aggregate)"),
    "adder": (lambda: table().group_by(two).aggregate(int, three, two), "subtractor(key, row, aggregate)"),
    "adder of a reduce": (lambda: table().group_by(two).reduce(three, two), "adder(aggregate, new)"),
    "joiner": (lambda: joined("table", three), "joiner(left, right), .* give with_key=True"),
    "joiner of streams": (lambda: joined("stream", one, windows=ks.JoinWindows.of(5)), "joiner(left, right)"),
    "key selector": (lambda: joined("global table", two, key_selector=one), "key_selector(key, value)"),
    "joiner of tables": (lambda: tables(three), "joiner(left, right), .* let it take 2 arguments"),
    "foreign key": (lambda: tables(two, foreign_key=two), "foreign_key(left), .* give with_key=True"),
    "extractor": (
        lambda: ks.StreamsBuilder().stream("in", key=str, value=str, timestamp_extractor=one),
        "timestamp_extractor(record, partition_time_ms)",
    ),
    "what is unique": (lambda: stream().deduplicate(5, by=one, key=str), "by(key, value)"),
    "score": (lambda: grouped().top_n(3, by=two), "by(value)"),
    "supplier": (lambda: stream().process(lambda context: NeedsUrl("x")), "supplier(), but it takes (context)"),
    "processor": (lambda: stream().process(NeedsUrl), "supplier(), but the one it was given takes (url)"),
    "a method": (lambda: stream().map_values(Strict("x").both), "takes (a, b)"),
    "an object": (lambda: stream().filter(Strict("x")), "takes (a)"),
    "a partial function": (lambda: stream().filter(functools.partial(two, 1)), "takes (b)"),
    "a builtin": (lambda: stream().filter(str.upper), "takes (self, /)"),
    "keywords": (lambda: stream().map_values(lambda *, value: value), "takes (*, value)"),
}


@pytest.mark.parametrize(("declare", "said"), REFUSED.values(), ids=REFUSED)
def test_a_call_that_cannot_work_is_refused_with_the_users_line(declare, said):
    with pytest.raises(TopologyError) as error:
        declare()
    assert all(part in str(error.value) for part in said.split(" .* ")), str(error.value)
    assert re.search(r"at \S*test_signatures.py:\d+", str(error.value))


@functools.wraps(one)
def wrapped(*arguments):
    return arguments[0]


@pytest.mark.parametrize(
    "function",
    [
        wrapped,
        two,
        lambda *arguments: True,
        lambda key, value=None, other=5: True,
        functools.partial(three, 1),
        functools.lru_cache(two),
        Strict("x").both,
        mock.Mock(),
        max,
        print,
        isinstance,
    ],
    ids=lambda function: getattr(function, "__name__", type(function).__name__),
)
def test_what_can_be_called_passes(function):
    stream().filter(function)
    grouped().reduce(function)


def test_what_was_refused_leaves_nothing_behind():
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str)
    with pytest.raises(TopologyError):
        words.filter(one, name="kept")
    words.filter(two, name="kept").to("out")
    assert len(builder.build().nodes) == 3
