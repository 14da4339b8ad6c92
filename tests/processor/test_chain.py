"""Chains of simple steps: one closure that calls functions record by record; errors find their step."""

from __future__ import annotations

import pytest

import kstreams as ks
from kstreams.errors import ProcessingError
from kstreams.testing import TopologyTestDriver


def _written(builder: ks.StreamsBuilder, rows: list[tuple[str, int]]) -> list[tuple[str, int]]:
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in", key=str, value=int)
        for timestamp, (key, value) in enumerate(rows):
            source.pipe_input(key, value, timestamp)
        return [(row.key, row.value) for row in driver.create_output_topic("out", key=str, value=int).read_records()]


def test_functions_are_called_depth_first_record_by_record() -> None:
    calls: list[str] = []

    def noting(name: str, result: object) -> object:
        calls.append(name)
        return result

    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=int)
    stream = stream.map_values(lambda v: noting("map", v + 1)).filter(lambda k, v: noting("filter", v % 2))
    stream.peek(lambda k, v: noting("peek", None)).select_key(lambda k, v: k * 2).to("out", key=str, value=int)
    assert _written(builder, [("a", 0), ("b", 1), ("c", 2)]) == [("aa", 1), ("cc", 3)]
    assert calls == ["map", "filter", "peek", "map", "filter", "map", "filter", "peek"]


def test_a_branch_with_nothing_behind_it_swallows_its_records() -> None:
    builder = ks.StreamsBuilder()
    branches = builder.stream("in", key=str, value=int).split(name="by-").branch(lambda k, v: v > 1, name="high")
    branches.default_branch(name="low")["by-high"].map(lambda k, v: (k, -v)).to("out", key=str, value=int)
    assert _written(builder, [("a", 1), ("b", 2)]) == [("b", -2)]


@pytest.mark.parametrize("failing", ["first", "second", "third", "fourth"])
def test_an_error_names_the_step_that_raised(failing: str) -> None:
    def step(name: str) -> int:
        if name == failing:
            raise ValueError("no")
        return 1

    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=int).map_values(lambda v: step("first"), name="first")
    stream = stream.filter(lambda k, v: step("second"), name="second").filter_not(
        lambda k, v: not step("third"), name="third"
    )
    stream.map(lambda k, v: (k, step("fourth")), name="fourth").to("out", key=str, value=int)
    with pytest.raises(ProcessingError, match=f"^{failing} .*record in-0@0"):
        _written(builder, [("a", 1)])
