"""The recorded cases of the real Kafka Streams, on Spark: record for record where only one order is possible."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import on_spark_engine, recorded
from tests.conformance.on_spark import WHOLE, differing
from tests.conformance.test_driver import FAMILIES
from tests.spark.conftest import spark

__all__ = ["spark"]  # the fixture: one session for all tests

pytestmark = [recorded.needed, pytest.mark.spark]


@pytest.mark.parametrize(("most", "every"), [(WHOLE, 29), (7, 43), (1, 59)], ids=["whole", "sevens", "one by one"])
def test_a_sample_of_all_families(spark, most: int, every: int) -> None:
    cases = [case for family in FAMILIES for case in recorded.cases(family)[1::every]]
    assert differing(spark, cases, most) == []


@pytest.mark.parametrize("path", ["task", "relational"])
def test_a_sample_through_log_query_and_sink(spark, tmp_path: Path, path: str) -> None:
    families = FAMILIES[::2] if path == "task" else FAMILIES
    cases = [case for family in families for case in on_spark_engine.suitable(recorded.cases(family), path)[:1]]
    assert on_spark_engine.differing(spark, cases, path, tmp_path) == []


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(1800)
def test_a_sample_from_kafka_to_kafka(spark, kafka, tmp_path: Path) -> None:
    found = [on_spark_engine.suitable(recorded.cases(family), "task") for family in FAMILIES]
    cases = [case for suitable in found for case in on_spark_engine.after_time_zero(suitable)[:2]]
    assert len(cases) > 30
    servers = {"bootstrap.servers": kafka.bootstrap_servers}
    assert on_spark_engine.differing(spark, cases, "task", tmp_path, **servers) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["task", "relational"])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_that_can_go_through_log_query_and_sink(spark, tmp_path: Path, family: str, path: str) -> None:
    cases = on_spark_engine.suitable(recorded.cases(family), path)
    assert on_spark_engine.differing(spark, cases, path, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("most", [WHOLE, 7, 1], ids=["whole", "sevens", "one by one"])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_of_each_family(spark, family: str, most: int) -> None:
    assert differing(spark, recorded.cases(family), most) == []
