"""`map_headers`, `with_headers`, `drop_headers`: what follows has the new headers, what stands beside the old ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver

Stream = ks.KStream[str, str]
Pairs = tuple[tuple[str, bytes | None], ...]
OLD: Pairs = (("a", b"1"), ("b", b"2"), ("a", b"3"))


def written(say: Callable[[Stream], Any], topic: str = "out", **settings: Any) -> list[Pairs]:
    """The headers of what comes out for a record "v" with the headers `OLD`, and one without any."""
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    say(builder.stream("in", key=str, value=str))
    with TopologyTestDriver(builder.build(), settings) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        source.pipe_input("k", "v", 5, OLD)
        source.pipe_input("k", "w", 6)
        out = driver.create_output_topic(topic, key=bytes, value=bytes)
        return [tuple(record.headers) for record in out.read_records()]


def test_a_function_gives_new_headers() -> None:
    found = written(lambda s: s.map_headers(lambda headers: [*headers, ("c", "ä"), ("d", 4)]).to("out"))
    assert found == [(*OLD, ("c", "ä".encode()), ("d", b"4")), (("c", "ä".encode()), ("d", b"4"))]


def test_a_mapping_is_taken_as_headers() -> None:
    found = written(lambda s: s.map_headers(lambda headers: {**dict(headers), "c": None}).to("out"))
    assert found == [(("a", b"3"), ("b", b"2"), ("c", None)), (("c", None),)]


def test_a_generator_function_gives_headers_too() -> None:
    def upper(headers: Pairs) -> Any:
        for name, raw in headers:
            yield name.upper(), raw

    assert written(lambda s: s.map_headers(upper).to("out"))[0] == (("A", b"1"), ("B", b"2"), ("A", b"3"))


def test_a_function_of_the_whole_record() -> None:
    found = written(lambda s: s.map_headers(lambda r: {"from": f"{r.topic}@{r.offset}"}, with_record=True).to("out"))
    assert found == [(("from", b"in@0"),), (("from", b"in@1"),)]


def test_expressions_and_values_are_written_as_text_in_the_place_of_headers_of_the_same_name() -> None:
    def say(stream: Stream) -> None:
        made = {"trace-id": ks.header("b"), "a": ks.header("a", type=int) + 1}
        stream.with_headers(made, one=1, half=0.5, yes=True, raw=b"\xff", none=None, off=ks.offset).to("out")

    assert written(say)[0] == (
        ("b", b"2"),
        ("trace-id", b"2"),
        ("a", b"4"),
        ("one", b"1"),
        ("half", b"0.5"),
        ("yes", b"true"),
        ("raw", b"\xff"),
        ("none", None),
        ("off", b"0"),
    )


def test_null_is_a_header_without_a_value() -> None:
    assert written(lambda s: s.with_headers(b=ks.header("b")).to("out"))[1] == (("b", None),)


def test_headers_are_dropped_by_name() -> None:
    assert written(lambda s: s.drop_headers("a").to("out")) == [(("b", b"2"),), ()]
    assert written(lambda s: s.drop_headers("a", "b", "c").to("out")) == [(), ()]


def test_what_stands_beside_has_the_old_headers() -> None:
    def say(stream: Stream) -> None:
        stream.drop_headers("a", "b").to("bare")
        stream.to("out")

    assert written(say) == [OLD, ()]
    assert written(say, "bare") == [(), ()]


def test_operators_that_follow_see_the_new_headers() -> None:
    def say(stream: Stream) -> None:
        marked = stream.with_headers(kind=ks.value).filter(ks.header("kind") == "w")
        marked.map_headers(lambda headers: [*headers, ("seen", b"")]).to("out")

    assert written(say) == [(("kind", b"w"), ("seen", b""))]


def test_new_headers_pass_repartition_topics_and_tables() -> None:
    def say(stream: Stream) -> None:
        counted = stream.with_headers(kind=ks.value).drop_headers("a").group_by(ks.value).count()
        counted.to_stream().to("out")

    assert written(say) == [(("b", b"2"), ("kind", b"v")), (("kind", b"w"),)]


def test_new_headers_stay_with_a_record_that_waits_for_an_async_function() -> None:
    async def slow(value: str) -> str:
        await asyncio.sleep(0.02 if value == "v" else 0)
        return value

    def say(stream: Stream) -> None:
        stream.with_headers(kind=ks.value).drop_headers("a", "b").map_values(slow).to("out")

    assert written(say) == [(("kind", b"v"),), (("kind", b"w"),)]


def test_new_headers_stay_with_updates_that_suppress_holds() -> None:
    def say(stream: Stream) -> None:
        counted = stream.map_headers(lambda headers: [("n", "1")]).group_by_key().count()
        held = counted.suppress(ks.Suppressed.until_time_limit(timedelta(0)))
        held.to_stream().to("out")

    assert written(say) == [(("n", b"1"),), (("n", b"1"),)]


def test_merged_repartitions_stay_behind_what_reads_where_records_come_from() -> None:
    def say(stream: Stream) -> None:
        keyed = stream.select_key(ks.value).filter(ks.topic == "in")
        keyed.group_by_key().count().to_stream().to("out")

    assert len(written(say, **{"topology.optimization": "all"})) == 2


MISTAKES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda s: s.map_headers(lambda key, value: []), r"calls its function as function\(headers\)"),
    (lambda s: s.map_headers(ks.headers), "takes a function as function"),
    (lambda s: s.with_headers(), "needs a header"),
    (
        lambda s: s.with_headers("trace-id"),
        r"takes a mapping, not 'trace-id': write with_headers\(\{'trace-id': ...\}\)",
    ),
    (
        lambda s: s.with_headers(name=ks.value),
        r'name= names the operator; a header called name is \{"name": ks.value\}',
    ),
    (lambda s: s.with_headers(a=lambda value: 1), r"is made by a function: give it to map_headers\(\)"),
    (lambda s: s.with_headers(a=[1]), r"header 'a': a header holds text, bytes, .* not \[1\]"),
    (lambda s: s.with_headers({1: "a"}), "takes names of headers, not 1"),
    (lambda s: s.with_headers(a=ks.timestamp.cast(datetime)), "makes the header 'a' of .* a datetime"),
    (lambda s: s.with_headers(a=ks.struct(b=ks.value)), "makes the header 'a' of "),
    (lambda s: s.drop_headers(), "needs the names of headers"),
    (lambda s: s.drop_headers(ks.key), "takes the names of headers, not ks.key"),
]


@pytest.mark.parametrize(("say", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_wrong_calls_are_answered_when_the_topology_is_built(say: Callable[[Any], Any], sentence: str) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)

    def build() -> None:
        say(stream).to("out")
        builder.build()

    with pytest.raises(TopologyError, match=sentence):
        build()


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (None, r"the function returned None: return the headers, as \[\(name, value\), ...\]"),
        ("a", "the function returned 'a': return the headers"),
        ([("a", b"1", 2)], "a header is a pair of a name and a value"),
        ([(b"a", b"1")], "a header is a pair of a name and a value"),
        ([("a", [1])], r"a header holds text, bytes, an int, a float, a bool or None, not \[1\]"),
    ],
)
def test_what_are_no_headers_is_an_error_of_the_record(result: Any, sentence: str) -> None:
    with pytest.raises(ProcessingError, match=sentence):
        written(lambda s: s.map_headers(lambda headers: result).to("out"))
