"""A bit flipped in any file of a killed application ends in the true results or in an error that says so."""

from __future__ import annotations

import pytest

from tests.faults.flips import GOOD, run


@pytest.mark.parametrize("flips", [5, pytest.param(300, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_no_flipped_bit_gives_a_wrong_result(flips: int) -> None:
    seed = 7
    bad = [each for each in run(range(flips), seed, jobs=2) if each.outcome not in GOOD]
    assert bad == [], f"repeat with python -m tests.faults bit-flips --seed {seed} --rounds {flips}"
