"""The wall clock of one of three processes jumps: the application comes to rest, with the same results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.jumps import HOUR_MS, JUMPS, MOMENTS, Jump, Jumps
from tests.faults.takeover import PROCESSES, Given


def test_a_jump_in_the_middle(tmp_path: Path) -> None:
    outcome = Jumps(Given(rows=1_500), tmp_path).run(Jump(HOUR_MS, MOMENTS[1], process=1))
    assert outcome.is_right, outcome


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("by_ms", JUMPS.values(), ids=JUMPS.keys())
def test_every_jump_in_every_process(tmp_path: Path, by_ms: int, moment: str) -> None:
    jumps = Jumps(Given(rows=4_000), tmp_path)
    outcomes = [jumps.run(Jump(by_ms, moment, process)) for process in range(PROCESSES)]
    assert all(outcome.is_right for outcome in outcomes), outcomes
