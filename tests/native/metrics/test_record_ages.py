"""Ages of records are exact, also of times that no sum of 64 bits can hold; of very many at once nearly so."""

from __future__ import annotations

from time import monotonic

import pyarrow as pa
import pytest

from kstreams.metrics.samples import SampleWindows
from kstreams.metrics.sensors import RecordAges


@pytest.mark.parametrize("times", [[5, 1, 9], [2**62, 2**62 + 4_096], [-3, 2**61, 2**61, 2**61, 2**61]])
def test_ages_are_those_of_all_records(times: list[int]) -> None:
    ages = RecordAges(SampleWindows(30, 2))
    ages.record("in", pa.array(times, pa.int64()), now_ms=10)
    found, now = ages.by_topic["in"], monotonic()
    assert (found.lowest(now), found.highest(now)) == (10 - max(times), 10 - min(times))
    assert found.average(now) == pytest.approx(10 - sum(times) / len(times))
    assert ages.last_ms["in"] == times[-1]


def test_of_very_many_at_once_evenly_spaced_ones_stand_for_all() -> None:
    ages = RecordAges(SampleWindows(30, 2))
    ages.record("in", pa.array(range(50_000)), now_ms=50_000)
    found, now = ages.by_topic["in"], monotonic()
    assert found.count == 50_000
    assert found.average(now) == pytest.approx(25_000, rel=0.02)
    assert (found.lowest(now), found.highest(now)) == (pytest.approx(1, abs=1_000), pytest.approx(50_000, abs=1_000))
    assert ages.last_ms["in"] == 49_999
