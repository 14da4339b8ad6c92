"""Runs one draw in all ways that must not show, and says what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark.draws.draw import Draw
from tests.spark.draws.engines import interrupted, natively, on_spark, stopped
from tests.spark.draws.results import Results, differences

Way = Callable[[Path], Results]
"""Runs a draw in an empty folder."""

MAX_RECORDS = "spark.kstreams.max.records"
VERDICTS = EQUAL, DIFFERENT = "equal", "different"


@dataclass(frozen=True)
class Outcome:
    """What came of a draw.

    Parameters
    ----------
    draw : Draw
    differs : mapping
        By way of running it: how its results differ from those of the native engine with one thread.
    verdict : str
        In one word.
    records : int
        How many records the native engine has put out.
    """

    draw: Draw
    differs: Mapping[str, list[str]]
    verdict: str
    records: int

    def __str__(self) -> str:
        said = [f"  {way}: {'; '.join(what)}" for way, what in self.differs.items()]
        return "\n".join([f"draw {self.draw.name} is {self.verdict}: {self.draw}", *said])


def attempt(draw: Draw, folder: Path, ways: Mapping[str, Way]) -> Outcome:
    """Run a draw natively with one thread, then in other ways; compare each with the first."""
    expected = natively(draw, folder / "native")
    differs: dict[str, list[str]] = {}
    for number, (name, way) in enumerate(ways.items()):
        try:
            found = differences(draw.comparable, expected, way(folder / str(number)))
        except Exception as error:  # whatever ends one way, the others go on
            found = [f"{type(error).__name__}: {error}"]
        if found:
            differs[name] = found
    records = sum(len(rows) for of_topic in expected.values() for rows in of_topic)
    return Outcome(draw, differs, DIFFERENT if differs else EQUAL, records)


def native_ways(draw: Draw) -> dict[str, Way]:
    """Four threads with small slices; an end by an error in the middle, and a second run."""
    chance = draw.random("native")

    def limits() -> dict[str, Any]:
        return {
            "num.stream.threads": chance.choice([1, 4]),
            "max.poll.records": chance.choice([3, 7, 17, 60]),
            "buffered.records.per.partition": chance.choice([5, 10, 40]),
            "commit.interval.ms": chance.choice([0, 10, 1_000]),
        }

    sliced, broken, after = limits() | {"num.stream.threads": 4}, limits(), chance.randint(1, len(draw.rows))
    return {
        f"native, {sliced}": lambda folder: natively(draw, folder, **sliced),
        f"native, interrupted after {after}, {broken}": lambda folder: interrupted(draw, folder, after, **broken),
    }


def spark_ways(draw: Draw, session: Any) -> dict[str, Way]:
    """One step, and some; in every third draw with a stop in between, after which steps have another size."""
    chance = draw.random("Spark")
    path = {"spark.kstreams.path": chance.choice(["auto", "auto", "task"])}
    few, fewer = (path | {MAX_RECORDS: -(-len(draw.rows) // steps)} for steps in (chance.randint(3, 5), 2))
    ways: dict[str, Way] = {f"Spark, {path}": lambda folder: on_spark(draw, folder, session, **path)}
    if chance.random() < 2 / 3:
        return ways | {f"Spark, {few}": lambda folder: on_spark(draw, folder, session, **few)}
    after = chance.randint(1, 2)
    name = f"Spark, {few}, stopped after {after} steps, then {fewer}"
    return ways | {name: lambda folder: stopped(draw, folder, session, after, few, fewer)}


def step_ways(draw: Draw) -> dict[str, Way]:
    """One step for everything, steps of one size, steps of drawn sizes (some by workers that know nothing)."""
    from tests.spark.draws.in_steps import in_steps

    chance = draw.random("steps")
    least = 1 if len(draw.rows) < 100 else len(draw.rows) // 40
    size = chance.randint(least, 3 * least)
    return {
        "steps, one": lambda folder: in_steps(draw, folder, lambda: len(draw.rows)),
        f"steps, {size} rows each": lambda folder: in_steps(draw, folder, lambda: size),
        "steps of drawn sizes": lambda folder: in_steps(
            draw, folder, lambda: chance.randint(least, 6 * least), lambda: chance.random() < 0.3
        ),
    }


def summary(outcomes: Iterable[Outcome]) -> str:
    """The counts that close a run."""
    known = list(outcomes)
    counts = Counter(each.verdict for each in known)
    return f"{sum(each.records for each in known):,} records: " + ", ".join(
        f"{counts[name]} {name}" for name in VERDICTS
    )
