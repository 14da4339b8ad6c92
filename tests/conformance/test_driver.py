"""The recorded cases of the real Kafka Streams, on `TopologyTestDriver`: description, every output row, every store."""

from __future__ import annotations

import pytest

from tests.conformance import recorded

pytestmark = recorded.needed

FAMILIES = (
    "stateless",
    "aggregate",
    "tumbling",
    "hopping",
    "session",
    "sliding",
    "window_close",
    "suppress",
    "cogroup",
    "stream_stream_join",
    "global_table_join",
    "to_table",
    "table_aggregate",
    "table_table_join",
    "foreign_key_join",
    "stream_table_join",
    "process",
    "source",
    "naming",
    "pipeline",
)


def failures(family: str, batch: int | None = None, every: int = 1) -> dict[str, list[str]]:
    """What differs, by case; of all cases, or of one in so many."""
    found = {case["name"]: differences(case, batch) for case in recorded.cases(family)[::every]}
    return {name: different for name, different in found.items() if different}


def differences(case: recorded.Case, batch: int | None) -> list[str]:
    """What differs in one case."""
    return [what for what, _, _ in recorded.replay().check(case, batch)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_one_record_at_a_time(family: str) -> None:
    assert failures(family, every=5) == {}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_in_batches_without_the_record_cache(family: str) -> None:
    assert failures(family, batch=7, every=5) == {}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 1, 7, 100])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases(family: str, batch: int | None) -> None:
    assert failures(family, batch) == {}
