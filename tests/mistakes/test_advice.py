"""What looks like a mistake and may be meant is told once, at the first record, with the user's line."""

from __future__ import annotations

import logging

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.testing import TopologyTestDriver


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def pipe(builder: ks.StreamsBuilder, values: list[str], *, key: str | None = "k", **config: str) -> None:
    with TopologyTestDriver(builder.build(), {"application.id": "a", **config}) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp, value in enumerate(values):
            topic.pipe_input(key, value, timestamp=timestamp)


def words(builder: ks.StreamsBuilder) -> ks.KStream[str, str]:
    return builder.stream("in", key=str, value=str)


def forgets(key: str, word: str, seen: dict[str, int]) -> None:
    seen.update({word: 1})


def nothing(*given: object) -> None:
    return None


AGGREGATIONS = {
    "aggregate": lambda grouped: grouped.aggregate(dict, forgets, value=dict[str, int]),
    "tumbling": lambda grouped: grouped.windowed_by(ks.TimeWindows(size=10)).aggregate(
        dict, forgets, value=dict[str, int]
    ),
    "hopping": lambda grouped: grouped.windowed_by(ks.TimeWindows(size=10, advance=5)).aggregate(
        dict, forgets, value=dict[str, int]
    ),
    "sliding": lambda grouped: grouped.windowed_by(ks.SlidingWindows(difference=10)).aggregate(
        dict, forgets, value=dict[str, int]
    ),
    "sessions": lambda grouped: grouped.windowed_by(ks.SessionWindows(gap=10)).aggregate(
        dict, forgets, merger=lambda key, a, b: {**a, **b}, value=dict[str, int]
    ),
    "cogroup": lambda grouped: grouped.cogroup(forgets).aggregate(dict, value=dict[str, int]),
}


@pytest.mark.parametrize("aggregate", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_an_aggregator_that_returns_nothing_is_told_once(aggregate, caplog):
    builder = ks.StreamsBuilder()
    aggregate(words(builder).group_by_key())
    pipe(builder, ["a", "b", "c"])
    (line,) = told(caplog)
    assert "test_advice.py:" in line
    assert "returned None for a key that had no aggregate" in line
    assert "let it return the aggregate as well" in line


def test_the_adder_of_a_grouped_table_too(caplog):
    builder = ks.StreamsBuilder()
    table = builder.table("in", key=str, value=str)
    table.group_by(lambda key, word: (word, word), key=str, value=str).aggregate(
        dict, nothing, nothing, value=dict[str, int]
    )
    pipe(builder, ["a", "b"])
    (line,) = told(caplog)
    assert "aggregate() at" in line


def test_an_aggregator_that_deletes_what_was_there_is_not_told(caplog):
    builder = ks.StreamsBuilder()
    words(builder).group_by_key().aggregate(int, lambda key, word, n: None if n else n + 1, value=int)
    pipe(builder, ["a", "b"])
    assert told(caplog) == []


FLAT = {
    "a value": lambda stream: stream.flat_map_values(lambda word: word.upper(), value=str),
    "key and value": lambda stream: stream.flat_map_values(lambda key, word: word, with_key=True, value=str),
}


@pytest.mark.parametrize("flatten", FLAT.values(), ids=FLAT)
def test_letters_that_come_of_a_text_are_told_once_and_go_on(flatten, caplog):
    builder = ks.StreamsBuilder()
    flatten(words(builder)).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_values(["ab", "cd"])
        letters = driver.create_output_topic("out", key=str, value=str).read_values()
    assert "".join(letters).lower().replace("!", "") == "abcd"
    (line,) = told(caplog)
    assert "flat_map_values() at" in line
    assert "test_advice.py:" in line
    assert "return [text]" in line


def test_an_expression_of_a_text_is_refused():
    builder = ks.StreamsBuilder()
    words(builder).flat_map_values(ks.value + "!", value=str).to("out")
    with pytest.raises(TopologyError, match=r"flat_map_values\(\) at .*test_advice.py.* is of type str: give a list"):
        builder.build()


def test_letters_of_an_async_function_too(caplog):
    async def shout(word: str) -> list[str]:
        return word.upper()  # type: ignore[return-value]

    builder = ks.StreamsBuilder()
    words(builder).flat_map_values(shout).to("out")
    pipe(builder, ["ab", "cd"])
    assert len(told(caplog)) == 1


def test_lists_are_not_told(caplog):
    builder = ks.StreamsBuilder()
    words(builder).flat_map_values(str.split, value=str).to("out")
    pipe(builder, ["a b", "c"])
    assert told(caplog) == []
