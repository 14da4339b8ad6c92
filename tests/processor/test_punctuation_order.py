"""Punctuators that are due at the same time run in the order of Kafka Streams: that of Java's `PriorityQueue`."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.task_punctuations import TaskPunctuations
from kstreams.processor.topology.topology import Topology
from kstreams.testing import TopologyTestDriver

FOLDER = Path(__file__).parent / "punctuation_order"
STREAM_TIME, WALL_CLOCK = ks.PunctuationType.STREAM_TIME.value, ks.PunctuationType.WALL_CLOCK_TIME.value

Scenario = dict[str, Any]
"""`punctuators`: [node, name, interval], scheduled in `init`; `acts`: at its n-th call, a punctuator cancels another
(interval None) or schedules it: [name, n, other, interval]; `moves`: the times that come."""

Calls = list[list[Any]]


class Scheduling(ks.Processor[Any, Any, Any, Any]):
    """Schedules the punctuators of a scenario that belong to one node."""

    def __init__(self, node: str, scenario: Scenario, run: Run) -> None:
        self.node, self.scenario, self.run = node, scenario, run

    def init(self, context: ks.ProcessorContext[Any, Any]) -> None:
        self.context = context
        for node, name, interval_ms in self.scenario["punctuators"]:
            if node == self.node:
                self.schedule(name, interval_ms)

    def schedule(self, name: str, interval_ms: int) -> None:
        kind = ks.PunctuationType(self.scenario["kind"])
        self.run.schedules[name] = self.context.schedule(interval_ms, kind, lambda now: self.call(name, now))

    def call(self, name: str, now: int) -> None:
        self.run.called.append([name, now])
        number = sum(called == name for called, _ in self.run.called)
        for _, _, other, interval_ms in [act for act in self.scenario["acts"] if act[:2] == [name, number]]:
            if interval_ms is not None:
                self.schedule(other, interval_ms)
            elif other in self.run.schedules:
                self.run.schedules[other].cancel()

    def process(self, record: ks.Record[Any, Any]) -> None:
        self.context.forward(record)


class Run:
    """What was called in one scenario, and what is scheduled."""

    def __init__(self) -> None:
        self.called: Calls = []
        self.schedules: dict[str, Any] = {}


def calls(scenario: Scenario) -> Calls:
    """The punctuators that are called, in order, with their times."""
    run = Run()
    topology = Topology().add_source("source", "in", key=str, value=str)
    topology.add_processor("first", lambda: Scheduling("first", scenario, run), "source")
    topology.add_processor("second", lambda: Scheduling("second", scenario, run), "first")
    with TopologyTestDriver(topology, start_ms=0) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        before = 0
        for move in scenario["moves"]:
            if scenario["kind"] == STREAM_TIME:
                topic.pipe_input("k", "v", move)
            else:
                driver.advance_wall_clock_time(move - before)
            before = move
    return run.called


EXAMPLES: list[tuple[Scenario, str]] = [
    (
        {
            "kind": STREAM_TIME,
            "punctuators": [["first", "s10", 10], ["first", "s20", 20], ["first", "once", 10]],
            "acts": [["once", 1, "once", None]],
            "moves": [0, 20, 80],
        },
        "s10@0 once@0 s20@0 s10@20 s20@20 s10@80 s20@80",
    ),
    (
        {
            "kind": WALL_CLOCK,
            "punctuators": [["first", "s10", 10], ["first", "s20", 20], ["first", "once", 20]],
            "acts": [["once", 1, "once", None]],
            "moves": [20, 80],
        },
        "s10@20 once@20 s20@20 s10@80 s20@80",
    ),
    (
        {
            "kind": STREAM_TIME,
            "punctuators": [["second", "p0", 10], ["first", "p1", 10], ["second", "p2", 20]],
            "acts": [],
            "moves": [80, 100, 200],
        },
        "p1@80 p2@80 p0@80 p1@100 p0@100 p2@100 p0@200 p1@200 p2@200",
    ),
    (
        {
            "kind": WALL_CLOCK,
            "punctuators": [["first", name, 10] for name in "abcd"],
            "acts": [["a", 1, "c", None]],
            "moves": [10, 20, 30],
        },
        "a@10 d@10 b@10 b@20 d@20 a@20 d@30 a@30 b@30",
    ),
    (
        {
            "kind": WALL_CLOCK,
            "punctuators": [["first", "a", 10], ["first", "b", 10], ["first", "c", 20]],
            "acts": [["a", 1, "late", 10], ["b", 1, "b", None], ["b", 1, "b", 20]],
            "moves": [10, 20, 40],
        },
        "a@10 b@10 a@20 c@20 late@20 b@40 late@40 a@40 c@40",
    ),
]
"""Recorded with Kafka Streams 4.4.0."""


def random_scenario(number: int) -> Scenario:
    draw = random.Random(number)
    names = [f"p{at}" for at in range(draw.randint(2, 7))]
    times = sorted(draw.choice([10, 20, 30, 40, 60, 80, 90, 100, 120, 200]) for _ in range(draw.randint(1, 8)))
    acts = [
        [draw.choice(names), draw.randint(1, 3), draw.choice([*names, "late"]), draw.choice([None, None, 10, 20])]
        for _ in range(draw.randint(0, 3))
    ]
    return {
        "kind": draw.choice([STREAM_TIME, WALL_CLOCK]),
        "punctuators": [
            [draw.choice(["first", "second"]), name, draw.choice([5, 10, 10, 20, 20, 30])] for name in names
        ],
        "acts": acts,
        "moves": times,
    }


def called_by_kafka_streams(scenarios: list[Scenario]) -> list[Calls]:
    from tests.support.java_programs import compiled

    java = ["java", "-cp", compiled(FOLDER), "PunctuationOrder"]
    text = "\n".join(map(json.dumps, scenarios))
    lines = subprocess.run(java, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def shown(called: Calls) -> str:
    return " ".join(f"{name}@{now}" for name, now in called)


@pytest.mark.parametrize(("scenario", "expected"), EXAMPLES)
def test_recorded_orders(scenario: Scenario, expected: str) -> None:
    assert shown(calls(scenario)) == expected


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="needs Java and Maven")
def test_random_scenarios_run_as_in_kafka_streams() -> None:
    scenarios = [scenario for scenario, _ in EXAMPLES] + [random_scenario(number) for number in range(300)]
    expected = called_by_kafka_streams(scenarios)
    assert [shown(called) for called in expected[: len(EXAMPLES)]] == [text for _, text in EXAMPLES]
    differing = [at for at, scenario in enumerate(scenarios) if calls(scenario) != expected[at]]
    assert differing == []


@given(
    st.lists(st.sampled_from([10, 10, 20, 30]), min_size=1, max_size=8),
    st.lists(st.integers(0, 200), min_size=1, max_size=8).map(sorted),
    st.integers(0, 7),
)
def test_a_task_that_goes_on_elsewhere_keeps_the_order(intervals: list[int], times: list[int], moved_at: int) -> None:
    def opened(called: Calls, deadlines: dict[str, int]) -> TaskPunctuations:
        punctuations = TaskPunctuations(ManualClock(0), deadlines)
        for at, interval_ms in enumerate(intervals):
            punctuations.schedule(
                "node", interval_ms, ks.PunctuationType.STREAM_TIME, lambda now, at=at: called.append([at, now])
            )
        punctuations.end_of_init(["node"])
        return punctuations

    stays: Calls = []
    moves: Calls = []
    one, other = opened(stays, {}), opened(moves, {})
    for at, time in enumerate(times):
        if at == moved_at:
            other = opened(moves, other.deadlines())
        one.stream_time.fire(time)
        other.stream_time.fire(time)
    assert moves == stays
