"""The recorded cases of the real Kafka Streams, as tasks inside Spark: the same final tables."""

from __future__ import annotations

import pytest

from tests.conformance import recorded
from tests.conformance.on_spark import recorded_tables, run_cases_spark
from tests.conformance.test_native import FAMILIES
from tests.spark.conftest import spark

__all__ = ["spark"]  # the fixture: one session for all tests

pytestmark = [recorded.needed, pytest.mark.spark]


def test_a_sample_of_all_families(spark) -> None:
    cases = [case for family in FAMILIES for case in recorded.cases(family)[::9][:6]]
    found = run_cases_spark(spark, cases)
    assert [case["name"] for case in cases if found[case["name"]] != recorded_tables(case)] == []


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_of_each_family(spark, family: str) -> None:
    cases = recorded.cases(family)
    found = run_cases_spark(spark, cases)
    assert [case["name"] for case in cases if found[case["name"]] != recorded_tables(case)] == []
