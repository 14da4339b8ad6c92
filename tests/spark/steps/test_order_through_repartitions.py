"""Final windows that are grouped anew, twice and more, keeping the last row: steps change nothing, on both engines.

Which row is the last depends on the order in each repartition topic. Times are equal often, results are older than what
had let them go, and a window may close in any step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.batch import Batch, TopicPartition
from kstreams.batch import Row as LogRow
from kstreams.config import Config
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.exchange.reports import resting_tasks
from kstreams.runtime.spark.program import Program, program_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import Step
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from tests.native.world import World
from tests.spark.stepped import run_step
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


class Shape(NamedTuple):
    """What the topology of an example looks like."""

    is_rekeyed: bool
    window: str
    is_suppressed: bool
    is_filtered: bool
    again: int
    is_beside: bool


class Input(NamedTuple):
    """A record of a topic."""

    topic: str
    partition: int
    key: str
    value: str
    time: int


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
    stream = table.to_stream()
    if shape.is_beside:
        other = builder.table("other", **TEXTS)
        stream = stream.map(lambda key, value: (value[2], f"{value}{key}"), **TEXTS).left_join(
            other, lambda value, beside: f"{value}+{beside}"
        )
    stream.to("out", **TEXTS)
    return builder.build()


class InSteps:
    """The tasks of an application on Spark, step by step, with its input in memory."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        made, existing = topology(shape), dict.fromkeys(("in", "other", "out"), PARTITIONS)
        config = Config.of({"application.id": "app", "statestore.cache.max.bytes": 0})
        spark = SparkSettings(snapshot_every=1_000, state_dir=str(folder / "local"))
        layout = lay_out(made, "app", existing)
        self.program = program_of(made, config, spark, layout, existing, str(folder / "checkpoint"))

    def run(self, steps: Iterable[Sequence[Input]]) -> Result:
        """What all steps, and the end of input behind them, put out."""
        states, resting, rows = {}, frozenset[str](), list[Any]()
        offsets: Counter[TopicPartition] = Counter()
        for number, step in enumerate([*steps, None]):
            read, reports = _batches(step or (), offsets), list[Any]()
            now = Step(2 * number, end=step is None, states=states, resting=resting)
            made, states = run_step(self.program, now, _given(self.program, read), reports)
            resting = resting_tasks(reports)
            rows += [row for table in made for row in table.to_pylist() if row["topic"] == "out"]
        STATE_CACHE.clear()
        return result((row["partition"], row["key"].decode(), _text(row["value"]), row["timestamp"]) for row in rows)


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()


def _batches(step: Sequence[Input], offsets: Counter[TopicPartition]) -> dict[TopicPartition, Batch]:
    rows: dict[TopicPartition, list[LogRow]] = {}
    for topic, partition, key, value, time in step:
        rows.setdefault(TopicPartition(topic, partition), []).append(LogRow(key.encode(), value.encode(), time, ()))
    found = {source: Batch.of_rows(source, mine, offsets[source]) for source, mine in rows.items()}
    offsets.update({source: len(mine) for source, mine in rows.items()})
    return found


def _given(program: Program, read: dict[TopicPartition, Batch]) -> Callable[[int, int], Iterable[Batch]]:
    def batches(number: int, partition: int) -> Iterable[Batch]:
        places = [TopicPartition(topic, partition) for topic in program.inputs[number]]
        return [read[place] for place in places if place in read]

    return batches


def result(rows: Iterable[tuple[int, str, Any, int]]) -> Result:
    """See `Result`."""
    known, by_key = list(rows), dict[Any, list[Any]]()
    for _, key, value, time in known:
        by_key.setdefault(key, []).append((value, time))
    return Counter(known), by_key


def in_steps(inputs: Sequence[Input], cuts: Iterable[int]) -> list[list[Input]]:
    """The records cut into steps, in the order in which tasks take them: all of a moment are in one step."""
    order = _order(inputs)
    moments = [reached for reached, *_ in order]
    ends = {cut % (len(order) + 1) for cut in cuts}
    whole = {next((at for at in range(end, len(order)) if moments[at] != moments[end - 1]), len(order)) for end in ends}
    places = sorted({0, *(end for end in whole if end), len(order)})
    return [[inputs[at] for *_, at in order[start:stop]] for start, stop in pairwise(places)]


def _order(inputs: Sequence[Input]) -> list[tuple[int, int, str, int]]:
    found = list[tuple[int, int, str, int]]()
    for source in {(row.partition, row.topic) for row in inputs}:
        places = [at for at, row in enumerate(inputs) if (row.partition, row.topic) == source]
        reached = accumulate((inputs[at].time for at in places), max)
        found += [(time, *source, at) for time, at in zip(reached, places, strict=True)]
    return sorted(found)


shapes = st.builds(
    Shape, st.booleans(), st.sampled_from([*WINDOWS]), st.booleans(), st.booleans(), st.integers(0, 2), st.booleans()
)
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


@settings(max_examples=examples(2_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes, drawn, st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_no_size_of_the_steps_shows(tmp_path_factory: Any, shape: Shape, rows: Any, cuts: list[int]) -> None:
    inputs = inputs_of(rows, is_beside=shape.is_beside)
    one, many = (InSteps(shape, tmp_path_factory.mktemp("order")).run(in_steps(inputs, at)) for at in ((), cuts))
    assert one == many


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes, drawn, st.integers(1, 20), st.sampled_from([1, 3]))
def test_the_native_engine_gives_the_same(
    tmp_path_factory: Any, shape: Shape, rows: Any, most: int, threads: int
) -> None:
    inputs = inputs_of(rows, is_beside=shape.is_beside)
    expected = InSteps(shape, tmp_path_factory.mktemp("order")).run(in_steps(inputs, ()))
    world = world_of(tmp_path_factory.mktemp("order"), inputs)
    limits = {"max_poll_records": most, "buffered_records_per_partition": most, "num_stream_threads": threads}
    world.run(topology(shape), **limits)
    found = result((at, *row) for at, of_part in enumerate(world.partitions("out")) for row in of_part)
    assert found == expected


def world_of(folder: Path, inputs: Sequence[Input]) -> World:
    """The records in a log."""
    world = World(folder, **{"statestore.cache.max.bytes": 0})
    for topic in ("in", "other", "out"):
        world.create(topic, PARTITIONS)
        for partition in range(PARTITIONS):
            mine = [(row.key, row.value, row.time) for row in inputs if row[:2] == (topic, partition)]
            world.write(topic, mine, partition)
    return world
