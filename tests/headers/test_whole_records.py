"""`with_record=True`: a function of a stream takes the whole record, with its headers and the place it came from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver

Stream = ks.KStream[str, str]
Whole = ks.RecordWithMetadata[str, str]


def built(say: Callable[[Stream], Any]) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    say(builder.stream("in", key=str, value=str))
    return builder.build()


def written(say: Callable[[Stream], Any], key: Any = str, value: Any = str) -> list[tuple[Any, Any]]:
    """Key and value of what comes out for three records: "a" and "c" have a header n, "b" has none."""
    with TopologyTestDriver(built(say), {"statestore.cache.max.bytes": 0}) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        source.pipe_input("k", "a", 5, [("n", b"1")])
        source.pipe_input("k", "b", 6)
        source.pipe_input("k", "c", 7, [("n", b"0"), ("n", b"3")])
        return driver.create_output_topic("out", key=key, value=value).read_key_values()


def numbered(record: Whole) -> bool:
    return record.header("n") is not None


def letters(record: Whole) -> Iterator[str]:
    yield from (record.value, record.value.upper())


async def answered(record: Whole) -> str:
    await asyncio.sleep(0.01 if record.value == "a" else 0)
    return f"{record.value}{record.offset}{record.header('n')!r}"


def test_a_record_has_all_that_is_known_of_it() -> None:
    seen: list[Whole] = []

    def say(stream: Stream) -> None:
        stream.foreach(seen.append, with_record=True)
        stream.to("out")

    written(say)
    assert seen[0] == ks.RecordWithMetadata(
        key="k", value="a", timestamp=5, headers=(("n", b"1"),), topic="in", partition=0, offset=0
    )
    assert [record.offset for record in seen] == [0, 1, 2]
    assert [record.header("n") for record in seen] == [b"1", None, b"3"]


def test_a_record_is_read_only() -> None:
    def change(record: Whole) -> str:
        record.value = "x"  # type: ignore[misc]
        return record.value

    with pytest.raises(ProcessingError, match="immutable"):
        written(lambda s: s.map_values(change, with_record=True).to("out"))


USES: dict[str, tuple[Callable[[Stream], Any], list[tuple[Any, Any]]]] = {
    "filter": (lambda s: s.filter(numbered, with_record=True).to("out"), [("k", "a"), ("k", "c")]),
    "filter_not": (lambda s: s.filter_not(numbered, with_record=True).to("out"), [("k", "b")]),
    "map": (
        lambda s: s.map(lambda r: (str(r.offset), r.topic), with_record=True, key=str, value=str).to("out"),
        [("0", "in"), ("1", "in"), ("2", "in")],
    ),
    "map_values": (
        lambda s: s.map_values(lambda r: f"{r.value}{r.timestamp}", with_record=True).to("out", value=str),
        [("k", "a5"), ("k", "b6"), ("k", "c7")],
    ),
    "flat_map": (
        lambda s: s.flat_map(lambda r: [(r.value, r.key)] * r.offset, with_record=True, key=str, value=str).to("out"),
        [("b", "k"), ("c", "k"), ("c", "k")],
    ),
    "flat_map_values": (
        lambda s: s.flat_map_values(letters, with_record=True, value=str).filter(ks.offset == 2).to("out"),
        [("k", "c"), ("k", "C")],
    ),
    "select_key": (
        lambda s: s.select_key(lambda r: str(r.partition), with_record=True, key=str).to("out"),
        [("0", "a"), ("0", "b"), ("0", "c")],
    ),
    "async": (
        lambda s: s.map_values(answered, with_record=True).to("out"),
        [("k", "a0b'1'"), ("k", "b1None"), ("k", "c2b'3'")],
    ),
}


@pytest.mark.parametrize(("say", "expected"), USES.values(), ids=USES)
def test_operators_give_what_the_function_says(say: Callable[[Stream], Any], expected: list[tuple[Any, Any]]) -> None:
    assert written(say) == expected


def test_group_by() -> None:
    counts = written(
        lambda s: s.group_by(lambda r: r.header("n") or b"", with_record=True, key=bytes).count().to_stream().to("out"),
        key=bytes,
        value=int,
    )
    assert counts == [(b"1", 1), (b"", 1), (b"3", 1)]


def test_branches_of_records_stand_beside_others() -> None:
    def say(stream: Stream) -> None:
        split = stream.split(name="is-").branch(numbered, with_record=True, name="numbered")
        branches = split.branch(lambda key, value: value == "b", name="b").default_branch(name="rest")
        branches["is-numbered"].map_values(ks.value + "!", value=str).merge(branches["is-b"]).to("out")

    assert written(say) == [("k", "a!"), ("k", "b"), ("k", "c!")]


def test_peek_sees_what_operators_before_have_made() -> None:
    seen: list[Any] = []
    upper = ks.value.str.upper()
    written(lambda s: s.map_values(upper).peek(lambda r: seen.append((r.value, r.headers)), with_record=True).to("out"))
    assert seen == [("A", (("n", b"1"),)), ("B", ()), ("C", (("n", b"0"), ("n", b"3")))]


def test_the_annotation_of_a_function_gives_the_type() -> None:
    def size(record: Whole) -> int:
        return len(record.value)

    assert written(lambda s: s.map_values(size, with_record=True).to("out"), value=int)[0] == ("k", 1)


def test_a_failure_names_the_operator_and_the_record() -> None:
    with pytest.raises(ProcessingError, match=r"map_values\(\) at .*test_whole_records.py.* failed on record in-0@0"):
        written(lambda s: s.map_values(lambda r: r.value + 1, with_record=True, value=str).to("out"))


MISTAKES: list[tuple[Callable[[Stream], Any], str]] = [
    (lambda s: s.filter(lambda r: True), "give with_record=True, which calls it with the whole record"),
    (lambda s: s.filter(lambda key, value: True, with_record=True), "let it take the record alone"),
    (lambda s: s.map_values(lambda a, b, c: a, with_record=True), "let it take one argument"),
    (lambda s: s.map_values(ks.value, with_record=True), "with_record=True at .* is for functions"),
    (lambda s: s.map((ks.key, ks.value), with_record=True), "with_record=True at .* is for functions"),
    (lambda s: s.map_values(lambda r: r, with_record=True, with_key=True), "leave with_key out"),
    (lambda s: s.filter(5, with_record=True), "takes a function"),
    (lambda s: s.split().branch(answered, with_record=True).default_branch(), "cannot wait for an async function"),
]


@pytest.mark.parametrize(("say", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_wrong_calls_are_answered_at_once(say: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        built(say)


@pytest.mark.parametrize(
    ("read", "cure"),
    [
        (lambda r: r.with_value("x"), "write map_values()"),
        (lambda r: r.getTopic, "did you mean|write topic|it is called"),
        (lambda r: r.timestamp_ms, "write timestamp"),
    ],
)
def test_a_name_that_a_record_does_not_have_is_answered(read: Callable[[Any], Any], cure: str) -> None:
    with pytest.raises(ProcessingError, match=cure):
        written(lambda s: s.map_values(read, with_record=True, value=str).to("out"))
