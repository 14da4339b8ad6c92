"""Random topologies on random data, on both engines: `python -m tests.spark.draws --draws 200 --seed 1`.

Each draw is run natively with one thread, with four, and with an interruption; and on Spark in one step and in several.
`--layer steps` runs the tasks of Spark step by step without Spark instead, much faster, in steps of a single record
too; `--layer moves` begins on one engine and goes on on the other. All must give the same results. A draw is repeated
with `--seed S --first N --draws 1`. `--large 5` runs five topologies over a million records as well; they take minutes.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.spark.draws.attempt import (
    DIFFERENT,
    EQUAL,
    Outcome,
    Way,
    attempt,
    native_ways,
    spark_ways,
    step_ways,
    summary,
)
from tests.spark.draws.draw import Draw, draw
from tests.spark.draws.large import LARGE, compare
from tests.spark.draws.moves import move_ways

Ways = Callable[[Draw], dict[str, Way]]


def ways(layer: str, resources: ExitStack) -> Ways:
    """How a draw is run on a layer."""
    if layer == "native":
        return native_ways
    if layer == "moves":
        session = resources.enter_context(spark_session())
        return lambda each: move_ways(each, session)
    if layer == "steps":
        return lambda each: native_ways(each) | step_ways(each)
    session = resources.enter_context(spark_session())
    return lambda each: native_ways(each) | spark_ways(each, session)


def spark_session() -> Any:
    """A session of little cost, which is stopped at the end of its context."""
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings
    from tests.spark.conftest import LITTLE_CPU

    return spark_session(SparkSettings(delta=None, conf=LITTLE_CPU))


def run(numbers: range, seed: int, ways_of: Ways) -> list[Outcome]:
    """Run the draws of all numbers; those that differ are printed at once."""
    done: list[Outcome] = []
    for number in numbers:
        drawn = draw(seed, number)
        with tempfile.TemporaryDirectory(prefix="kstreams-draw-") as folder:
            done.append(attempt(drawn, Path(folder), ways_of(drawn)))
        if done[-1].verdict != EQUAL:
            print(done[-1], flush=True)
        if len(done) % 10 == 0:
            print(f"{len(done)} of {len(numbers)} draws", file=sys.stderr, flush=True)
    return done


def run_large(count: int, seed: int, session: Any) -> int:
    """Run so many of the large topologies; how many rows differ."""
    total = 0
    for name in list(LARGE)[:count]:
        with tempfile.TemporaryDirectory(prefix="kstreams-draw-") as folder:
            for said, differ in compare(name, seed, Path(folder), session):
                print(f"{name}, {said}: {differ:,} differ", flush=True)
                total += differ
    return total


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.spark.draws", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--layer", choices=["spark", "steps", "native", "moves"], default="spark")
    parser.add_argument("--large", type=int, default=0, help="how many of the large topologies to run as well")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # of dropped records; they are part of the game
    print(f"seed {options.seed}", flush=True)
    numbers = range(options.first, options.first + options.draws)
    with ExitStack() as resources:
        done = run(numbers, options.seed, ways(options.layer, resources))
        wrong = run_large(options.large, options.seed, resources.enter_context(spark_session())) if options.large else 0
    print(summary(done))
    return int(wrong > 0 or any(each.verdict == DIFFERENT for each in done))


if __name__ == "__main__":
    sys.exit(main())
