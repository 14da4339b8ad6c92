"""Random topologies on random data in steps from one record on, without Spark: no size of the steps shows.

`python -m tests.spark.draws --layer steps` runs more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.draws.attempt import DIFFERENT, attempt, step_ways
from tests.spark.draws.draw import draw

pytestmark = pytest.mark.spark

SEED, FEW, MANY = 2, 4, 80
DRAWS = [
    *((number, 30) for number in range(FEW)),
    *(pytest.param(number, 50, marks=pytest.mark.slow) for number in range(FEW, MANY)),
]


@pytest.mark.parametrize(("number", "most_rows"), DRAWS)
def test_no_size_of_the_steps_shows(tmp_path: Path, number: int, most_rows: int) -> None:
    drawn = draw(SEED, number, most_rows)
    outcome = attempt(drawn, tmp_path, step_ways(drawn))
    assert outcome.verdict != DIFFERENT, outcome
