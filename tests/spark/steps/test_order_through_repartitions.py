"""Final windows that are grouped anew, twice and more, keeping the last row: steps change nothing, on both engines.

Which row is the last depends on the order in each repartition topic. Times are equal often, results are older than what
had let them go, and a window may close in any step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kstreams as ks
from tests.native.world import World
from tests.spark.steps_in_memory import Input, StepsInMemory, cut_anywhere
from tests.support.examples import examples

pytestmark = pytest.mark.spark

TEXTS: dict[str, Any] = {"key": str, "value": str}
WINDOWS: dict[str, Any] = {
    "tumbling": ks.TimeWindows(size=10, grace=0),
    "late": ks.TimeWindows(size=10, grace=8),
    "hopping": ks.TimeWindows(size=10, advance=4, grace=0),
    "session": ks.SessionWindows(gap=4, grace=0),
    "sliding": ks.SlidingWindows(difference=6, grace=0),
}
PARTITIONS = 3
TOPICS = dict.fromkeys(("in", "other", "out"), PARTITIONS)


class Shape(NamedTuple):
    """What the topology of an example looks like."""

    is_rekeyed: bool
    window: str
    is_suppressed: bool
    is_filtered: bool
    again: int
    is_beside: bool


Result = tuple[Counter[Any], dict[Any, list[Any]]]
"""The rows of each partition of the result, in any order; the values of each key in their order."""


def latest(old: str, new: str) -> str:
    return new


def unchanged(total: str, old: str) -> str:
    return total


def letter(at: int) -> Callable[[str], str]:
    """A group by one letter of a text."""
    return lambda text: text[at % len(text)]


def topology(shape: Shape) -> ks.Topology:
    """Windows that close, whose results are grouped by other letters again and again."""
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    read = builder.stream("in", **TEXTS)
    read = read.filter(lambda key, value: value[0] != "c") if shape.is_filtered else read
    grouped = read.group_by(lambda key, value: value[0], **TEXTS) if shape.is_rekeyed else read.group_by_key(**TEXTS)
    windowed = grouped.windowed_by(WINDOWS[shape.window])
    if shape.is_suppressed:
        final = windowed.reduce(latest).suppress(ks.Suppressed.until_window_closes())
    else:
        final = windowed.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).reduce(latest)
    table = final.group_by(lambda at, value: (value[1], f"{value}{at.key}"), **TEXTS).reduce(latest, unchanged)
    for number in range(shape.again):
        by = letter(number)
        table = table.group_by(lambda key, value, by=by: (by(value), f"{value}{key}"), **TEXTS).reduce(
            latest, unchanged
        )
    stream = table.to_stream().filter(lambda key, value: value is not None)
    if shape.is_beside:
        other = builder.table("other", **TEXTS)
        stream = stream.map(lambda key, value: (value[2], f"{value}{key}"), **TEXTS).left_join(
            other, lambda value, beside: f"{value}+{beside}"
        )
    stream.to("out", **TEXTS)
    return builder.build()


def result(rows: Iterable[tuple[int, str, Any, int]]) -> Result:
    """See `Result`."""
    known, by_key = list(rows), dict[Any, list[Any]]()
    for _, key, value, time in known:
        by_key.setdefault(key, []).append((value, time))
    return Counter(known), by_key


def shapes(*windows: str) -> st.SearchStrategy[Shape]:
    """Topologies with one of these windows, or any."""
    of_window, flag = st.sampled_from(windows or [*WINDOWS]), st.booleans()
    return st.builds(Shape, flag, of_window, flag, flag, st.integers(0, 2), flag)


gaps = st.sampled_from([0, 0, 0, 0, 1, 2, 5, 11, -3])
drawn = st.lists(
    st.tuples(
        st.sampled_from(["in", "in", "other"]),
        st.integers(0, PARTITIONS - 1),
        st.text("abc", min_size=3, max_size=3),
        gaps,
    ),
    min_size=8,
    max_size=40,
)
"""Topic, partition, letters and the time since the record before; times go back now and then."""


def inputs_of(rows: Sequence[tuple[str, int, str, int]], *, is_beside: bool) -> list[Input]:
    """The records: the first letter is the key, which is in any partition."""
    at, found, numbers = 10, list[Input](), count()
    for topic, partition, text, gap in rows:
        at += gap
        if topic == "in" or is_beside:
            found.append(Input(topic, partition, text[0], f"{text[1:]}{text[0]}{next(numbers)}", max(at, 0)))
    return found


def of_steps(shape: Shape, steps: Sequence[Sequence[Input]]) -> Result:
    """What an application gives in these steps."""
    rows = StepsInMemory(topology(shape), TOPICS).run(steps)
    return result(row[1:] for row in rows if row.topic == "out")


def check_steps(shape: Shape, rows: Any, cuts: list[int]) -> None:
    inputs = inputs_of(rows, is_beside=shape.is_beside)
    assert of_steps(shape, cut_anywhere(inputs, cuts)) == of_steps(shape, cut_anywhere(inputs, ()))


cut_places = st.lists(st.integers(0, 40), min_size=1, max_size=4)


@settings(max_examples=30, deadline=None)
@given(shapes(), drawn, cut_places)
def test_no_size_of_the_steps_shows(shape: Shape, rows: Any, cuts: list[int]) -> None:
    check_steps(shape, rows, cuts)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("window", WINDOWS)
def test_no_size_of_the_steps_shows_in_many_examples(window: str) -> None:
    check = settings(max_examples=420, deadline=None)(given(shapes(window), drawn, cut_places)(check_steps))
    check()


@pytest.mark.timeout(900)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes(), drawn, st.integers(1, 20), st.sampled_from([1, 3]))
def test_the_native_engine_gives_the_same(
    tmp_path_factory: Any, shape: Shape, rows: Any, most: int, threads: int
) -> None:
    inputs = inputs_of(rows, is_beside=shape.is_beside)
    world = world_of(tmp_path_factory.mktemp("order"), inputs)
    limits = {"max_poll_records": most, "buffered_records_per_partition": most, "num_stream_threads": threads}
    world.run(topology(shape), **limits)
    native = result((at, *row) for at, of_part in enumerate(world.partitions("out")) for row in of_part)
    assert native == of_steps(shape, cut_anywhere(inputs, ()))


def world_of(folder: Path, inputs: Sequence[Input]) -> World:
    """The records in a log."""
    world = World(folder, **{"statestore.cache.max.bytes": 0})
    for topic in TOPICS:
        world.create(topic, PARTITIONS)
        for partition in range(PARTITIONS):
            mine = [(row.key, row.value, row.time) for row in inputs if row[:2] == (topic, partition)]
            world.write(topic, mine, partition)
    return world
