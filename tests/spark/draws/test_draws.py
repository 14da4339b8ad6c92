"""Random topologies on random data: Spark in one step and in many, and the native engine, give the same results.

`python -m tests.spark.draws` runs more of them, and says how one is repeated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.draws.attempt import DIFFERENT, attempt, native_ways, spark_ways
from tests.spark.draws.draw import draw

pytestmark = pytest.mark.spark

SEED, FEW, MANY = 1, 4, 80
NUMBERS = [*range(FEW), *(pytest.param(number, marks=pytest.mark.slow) for number in range(FEW, MANY))]


@pytest.mark.parametrize("number", NUMBERS)
def test_spark_gives_the_native_results_in_one_step_and_in_many(spark: Any, tmp_path: Path, number: int) -> None:
    drawn = draw(SEED, number)
    outcome = attempt(drawn, tmp_path, native_ways(drawn) | spark_ways(drawn, spark))
    assert outcome.verdict != DIFFERENT, outcome
