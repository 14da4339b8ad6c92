"""No answer is wrong while a process that has tasks is killed; and the check that says so finds wrong answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import queries_under_fire
from tests.native.world import World
from tests.queries_under_fire import Given, Tally
from tests.support.kafka_cluster import can_run


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.create("in")
    made.write("in", [("a", "", 1), ("b", "", 2), ("a", "", 3)])
    return made


@pytest.mark.parametrize(
    ("count", "offset", "before", "is_right"),
    [
        (2, 2, {}, True), (1, 0, {}, True), (1, 1, {"in-0": 1}, True), (0, -1, {}, True),
        (2, 1, {}, False), (1, 2, {}, False), (3, 2, {}, False), (1, 1, {"in-0": 2}, False),
    ],
)  # fmt: skip
def test_an_answer_is_that_of_its_position_and_goes_back_behind_none(
    world: World, count: int, offset: int, before: dict[str, int], is_right: bool
) -> None:
    tally = Tally()
    tally.add(Given({"a": count}, ("a",), {"in-0": offset}, before, "here"))
    assert (tally.wrong(world) == []) is is_right


@pytest.mark.slow
def test_no_answer_is_wrong_while_a_process_is_killed() -> None:
    assert queries_under_fire.main(["--rounds", "1"]) == 0


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.skipif(not can_run(), reason="a broker needs Java, and Maven to fetch it")
def test_instances_find_each_other_through_kafka_and_no_answer_is_wrong() -> None:
    assert queries_under_fire.main(["--rounds", "1", "--home", "kafka"]) == 0
