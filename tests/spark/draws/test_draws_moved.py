"""Random topologies on random data that go on, from somewhere in their input, on the other engine.

`python -m tests.spark.draws --layer moves` runs more of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.draws.attempt import DIFFERENT, attempt
from tests.spark.draws.draw import draw
from tests.spark.draws.moves import move_ways

pytestmark = pytest.mark.spark

SEED, FEW, SOME, MANY, MOST_ROWS = 3, 4, 20, 50, 50
NUMBERS = [*range(FEW), *(pytest.param(number, marks=pytest.mark.slow) for number in range(FEW, MANY))]


@pytest.mark.parametrize("number", NUMBERS)
def test_native_runs_do_not_show_that_spark_had_their_state(tmp_path: Path, number: int) -> None:
    drawn = draw(SEED, number, MOST_ROWS)
    outcome = attempt(drawn, tmp_path, move_ways(drawn))
    assert outcome.verdict != DIFFERENT, outcome


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SOME))
def test_runs_that_change_engines_give_the_results_of_one(spark: Any, tmp_path: Path, number: int) -> None:
    drawn = draw(SEED, number)
    outcome = attempt(drawn, tmp_path, move_ways(drawn, spark))
    assert outcome.verdict != DIFFERENT, outcome
