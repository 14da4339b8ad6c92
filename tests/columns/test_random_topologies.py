"""Whatever a topology is made of: columns, records and any cutting of the input into batches show the same."""

from __future__ import annotations

import pytest

from tests.columns.random_topologies import Maker
from tests.columns.staged import has_stages, run_staged

QUICK, TESTS, TOPOLOGIES = 4, 10, 52
NUMBERS = [*range(QUICK), *(pytest.param(number, marks=pytest.mark.slow) for number in range(QUICK, TESTS))]


@pytest.mark.parametrize("number", NUMBERS)
def test_no_path_and_no_cutting_shows(number: int) -> None:
    seeds = range(number * TOPOLOGIES, (number + 1) * TOPOLOGIES)
    assert sum(map(same_however_run, seeds)) >= 50


def same_however_run(seed: int) -> bool:
    """Whether it could be run at all, which is stage by stage: a topology that reads what it writes cannot."""
    maker = Maker(seed)
    if not has_stages(maker.topology()):
        return False
    rows, cuts, caching = maker.topics(), maker.cuts(), maker.random.random() < 0.8
    said = f"seed {seed}: {maker.said}, cut at {cuts}"
    ways = {"records": (False, []), "columns": (True, []), "columns, cut": (True, cuts), "records, cut": (False, cuts)}
    seen = {
        way: run_staged(Maker(seed).topology(), rows, columns=columns, cuts=at, caching=caching)
        for way, (columns, at) in ways.items()
    }
    for way, found in seen.items():
        assert found == seen["records"], f"{said}: {way} differ from records"
    return True
