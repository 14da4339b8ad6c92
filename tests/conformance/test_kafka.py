"""The recorded cases of the real Kafka Streams, on the native runtime over a real broker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import recorded
from tests.conformance.on_kafka import comparable, differing
from tests.conformance.test_driver import FAMILIES

EVERY = 6

pytestmark = [recorded.needed, pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_of_each_family(family: str, kafka: Any) -> None:
    sample = comparable(recorded.cases(family))[::EVERY]
    assert sample
    assert differing(sample, kafka.bootstrap_servers) == []


def test_few_cases_are_left_out() -> None:
    cases = [case for family in FAMILIES for case in recorded.cases(family)[::EVERY]]
    assert len(comparable(cases)) > 0.85 * len(cases)
