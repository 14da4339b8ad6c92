"""Async functions do what plain ones do, in every operator that takes one; where none may stand, an error says so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from tests.async_functions.running import run

ROWS = [(key, value, time) for time, (key, value) in enumerate([("a", "x y"), ("b", ""), ("a", "zz"), ("c", "x")])]
Stream = ks.KStream[str, str]


def awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    async def asynchronous(*arguments: Any) -> Any:
        return function(*arguments)

    return asynchronous


OPERATORS: dict[str, Callable[[Stream, Callable[[Any], Any]], Stream]] = {
    "map": lambda s, f: s.map(f(lambda k, v: (v, k)), key=str, value=str),
    "map_values": lambda s, f: s.map_values(f(str.upper), value=str),
    "map_values with key": lambda s, f: s.map_values(f(lambda k, v: k + v), with_key=True, value=str),
    "filter": lambda s, f: s.filter(f(lambda k, v: len(v) > 1)),
    "filter_not": lambda s, f: s.filter_not(f(lambda k, v: len(v) > 1)),
    "flat_map": lambda s, f: s.flat_map(f(lambda k, v: [(w, k) for w in v.split()]), key=str, value=str),
    "flat_map_values": lambda s, f: s.flat_map_values(f(str.split), value=str),
    "select_key": lambda s, f: s.select_key(f(lambda k, v: v), key=str),
    "group_by": lambda s, f: s.group_by(f(lambda k, v: v), key=str).reduce(lambda a, b: b).to_stream(),
    "two in a row": lambda s, f: s.map_values(f(str.upper), value=str).filter(f(lambda k, v: v != "")),
}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_the_results_are_those_of_a_plain_function(operator: Callable[..., Stream]) -> None:
    plain, asynchronous = ks.StreamsBuilder(), ks.StreamsBuilder()
    for builder, function in ((plain, lambda function: function), (asynchronous, awaited)):
        operator(builder.stream("in", key=str, value=str), function).to("out")
    assert plain.build().describe() == asynchronous.build().describe()
    assert run(asynchronous, ROWS) == run(plain, ROWS) != []


def test_peek_shows_each_record_and_passes_it_on_foreach_shows_it() -> None:
    seen: list[Any] = []

    async def show(key: str, value: str) -> None:
        seen.append((key, value))

    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    stream.peek(show).to("out")
    stream.foreach(show)
    assert run(builder, ROWS) == ROWS
    assert sorted(seen) == sorted(2 * [(key, value) for key, value, _ in ROWS])


def test_the_annotation_tells_the_type() -> None:
    async def length(value: str) -> int:
        return len(value)

    async def words(value: str) -> AsyncIterator[str]:
        for word in value.split():
            yield word

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).flat_map_values(words).map_values(length).to("out")
    assert [value for _, value, _ in run(builder, ROWS, int)] == [1, 1, 2, 1]


class Louder:
    async def __call__(self, value: str) -> str:
        return value.upper()

    async def call(self, mark: str, value: str) -> str:
        return value.upper() + mark


@pytest.mark.parametrize(
    ("function", "mark"),
    [(Louder(), ""), (partial(Louder().call, "!"), "!"), (lambda value: Louder().call("?", value), "?")],
    ids=["object", "partial", "lambda"],
)
def test_anything_that_gives_awaitables_may_be_called(function: Any, mark: str) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(function, value=str, concurrency=2).to("out")
    assert [value for _, value, _ in run(builder, ROWS)] == [value.upper() + mark for _, value, _ in ROWS]


async def never(*arguments: Any) -> Any:
    raise AssertionError("this is not called")


WINDOWS = ks.JoinWindows(before=1, after=1, grace=0)
REFUSED: dict[str, Callable[[Stream, Any], Any]] = {
    "KTABLE-MAPVALUES": lambda s, t: t.map_values(never, value=str),
    "KTABLE-FILTER": lambda s, t: t.filter(never),
    "KSTREAM-KEY-SELECT": lambda s, t: t.to_stream(never),
    "KTABLE-SELECT": lambda s, t: t.group_by(never, key=str, value=str),
    "KSTREAM-AGGREGATE": lambda s, t: s.group_by_key().aggregate(str, never, value=str),
    "KSTREAM-REDUCE": lambda s, t: s.group_by_key().reduce(never),  # type: ignore[arg-type]
    "KSTREAM-JOIN": lambda s, t: s.join(t, never, value=str),
    "KSTREAM-MERGE": lambda s, t: s.join(s, never, windows=WINDOWS, value=str),
    "KSTREAM-BRANCH": lambda s, t: s.split().branch(never).no_default_branch(),
    "KSTREAM-SINK": lambda s, t: s.to(never),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("operator", "use"), REFUSED.items(), ids=REFUSED)
def test_where_a_function_is_called_at_once_an_async_one_is_refused(operator: str, use: Callable[..., Any]) -> None:
    builder = ks.StreamsBuilder()
    stream, table = builder.stream("in", key=str, value=str), builder.table("table", key=str, value=str)
    with pytest.raises(
        TopologyError, match=rf"test_operators\.py:\d+ \({operator}-\d+\) cannot wait for an async function"
    ):
        use(stream, table)


def test_so_is_a_processor_with_an_async_process() -> None:
    class Waiting(ks.Processor[str, str, str, str]):
        async def process(self, record: Any) -> None:  # type: ignore[override]
            raise AssertionError("this is not called")

    with pytest.raises(TopologyError, match="cannot wait for an async function"):
        ks.StreamsBuilder().stream("in", key=str, value=str).process(Waiting)


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"concurrency": 0}, "no call to make"), ({"ordered": "by_value"}, "no order")],
)
def test_settings_that_make_no_sense_are_refused(settings: Any, said: str) -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=str)
    with pytest.raises(TopologyError, match=said):
        stream.map_values(never, **settings)
    with pytest.raises(TopologyError, match="computed, not called"):
        stream.map_values(ks.value, value=str, timeout=5)


def test_an_application_without_async_functions_has_no_loop() -> None:
    script = """
import sys, threading, kstreams as ks
from kstreams.testing import TopologyTestDriver
builder = ks.StreamsBuilder()
builder.stream("in", key=str, value=str).map_values(str.upper).to("out", value=str)
with TopologyTestDriver(builder.build()) as driver:
    driver.create_input_topic("in", key=str, value=str).pipe_input("a", "b", 1)
assert not [thread for thread in threading.enumerate() if thread.name == "kstreams-async"]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
