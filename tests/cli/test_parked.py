"""`kstreams parked`: an application parks records, and its user looks at them, sends them back, or discards them."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from tests.native.stepped import stepped
from tests.native.world import World

STARTED_MS = 1_767_225_600_000  # 2026-01-01


class Parking:
    """An application with two branches; the call of one of them fails until the service is up."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_down = True
        self.clock = ManualClock(STARTED_MS)

    def call(self, value: str) -> str:
        if self.is_down:
            raise TimeoutError(f"no answer for {value}")
        return value.upper()

    def topology(self) -> ks.Topology:
        builder = ks.StreamsBuilder()
        stream = builder.stream("in", key=str, value=str)
        stream.to("copies")
        retry = ks.Retry(backoff="1s", attempts=2, on=TimeoutError)
        stream.map_values(self.call, retry=retry, park="parked", name="ask").to("out")
        return builder.build()

    def work(self, **settings: Any) -> None:
        with stepped(self.world, self.topology(), self.clock, **settings) as app:
            app.work()
            for _ in range(4):
                app.wait(1_000)

    def values(self, topic: str) -> list[str]:
        return sorted(row.value for row in self.world.rows(topic))


@pytest.fixture
def parking(kstreams: Any) -> Parking:
    world = World(kstreams.folder)
    for topic in ("in", "copies", "out", "parked"):
        world.create(topic, 2)
    parking = Parking(world)
    with world.log() as log, log.producer() as producer:
        for number, value in enumerate(["one", "two", "three"]):
            headers = [("trace", b"%d" % number)]
            producer.send("in", b"k", value.encode(), timestamp=number, headers=headers, partition=1)
    parking.work()
    return parking


@pytest.fixture
def parked(kstreams: Any, parking: Parking) -> Any:
    """Types `kstreams parked ...` for the log of the application."""
    return lambda *words, **more: kstreams(
        "parked", *words, "--log-dir", str(parking.world.settings["log.dir"]), **more
    )


def listed(parked: Any) -> dict[str, dict[str, Any]]:
    outcome = parked("list", "parked", "--json")
    assert outcome.status == 0, outcome.err
    return {row["record"]: row for row in outcome.json_lines()}


def test_parked_records_are_listed_with_their_attempts_and_errors(parked: Any) -> None:
    rows = listed(parked)
    assert len(rows) == 3
    first = next(iter(rows.values()))
    assert first | {"record": ""} == {
        "record": "",
        "key": "k",
        "input": "in-1@0",
        "operator": "ask",
        "attempts": 2,
        "first": "2026-01-01T00:00:00.000Z",
        "last": "2026-01-01T00:00:01.000Z",
        "error": "TimeoutError: no answer for one",
    }
    assert parked("list", "parked").out.splitlines()[0].split("\t")[:3] == ["record", "key", "input"]


def test_one_is_shown_whole(parked: Any) -> None:
    place = next(iter(listed(parked)))
    (shown,) = parked("show", "parked", place).json_lines()
    assert (shown["value"], shown["timestamp"], shown["headers"]) == ("one", 0, [["trace", "0"]])
    assert shown["stack"].startswith("Traceback (most recent call last)")


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_retried_record_goes_into_its_operator_alone(parking: Parking, parked: Any, guarantee: str) -> None:
    second = list(listed(parked))[1]
    outcome = parked("retry", "parked", second)
    assert (outcome.status, outcome.err) == (0, "sent back 1 record\n")
    assert second not in listed(parked)
    parking.is_down = False
    parking.work(processing_guarantee=guarantee)
    assert parking.values("out") == ["TWO"]
    assert parking.values("copies") == ["one", "three", "two"], "the other branch does not process it again"
    parking.work(processing_guarantee=guarantee)
    assert parking.values("out") == ["TWO"]


def test_a_retried_record_keeps_its_key_time_and_headers(parking: Parking, parked: Any, kstreams: Any) -> None:
    parked("retry", "parked", "--all")
    parking.is_down = False
    parking.work()
    log_dir = str(parking.world.settings["log.dir"])
    rows = kstreams.ok("consume", "out", "--from-beginning", "--until-end", "--json", "--log-dir", log_dir).json_lines()
    assert [(row["key"], row["value"], row["timestamp"], row["headers"]) for row in rows] == [
        ("k", "ONE", 0, [["trace", "0"]]),
        ("k", "TWO", 1, [["trace", "1"]]),
        ("k", "THREE", 2, [["trace", "2"]]),
    ]


def test_a_retried_record_that_fails_again_is_parked_again(parking: Parking, parked: Any) -> None:
    before = listed(parked)
    parked("retry", "parked", "--all")
    assert listed(parked) == {}
    parking.work()
    after = listed(parked)
    assert len(after) == 3
    assert not before.keys() & after.keys()


def test_another_application_does_not_take_the_record(parking: Parking, parked: Any) -> None:
    parked("retry", "parked", "--all")
    parking.is_down = False
    parking.world.settings["application.id"] = "other"
    parking.world.settings["auto.offset.reset"] = "latest"
    parking.work()
    assert parking.values("out") == []


def test_discarded_records_are_gone_after_a_confirmation(parked: Any) -> None:
    first, *others = listed(parked)
    refused = parked("discard", "parked", first, stdin="n\n")
    assert refused.status == 1
    assert "Discard 1 record of parked?" in refused.err
    assert first in listed(parked)
    assert parked("discard", "parked", first, stdin="y\n").status == 0
    assert list(listed(parked)) == others
    assert parked("discard", "parked", "--all", "--yes").err == "discarded 2 records\n"
    assert listed(parked) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("retry", "parked"), "name records, such as 0@7, or give --all"),
        (("retry", "parked", "0@99"), "there is no parked record 0@99 in parked"),
        (("list", "parkd"), "parked"),
    ],
)
def test_mistakes_are_told(parked: Any, words: tuple[str, ...], message: str) -> None:
    outcome = parked(*words)
    assert outcome.status != 0
    assert message in " ".join(outcome.err.replace("│", " ").split())
