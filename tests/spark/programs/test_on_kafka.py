"""Queries of PySpark from Kafka to Kafka, by Spark's own source, with the results of the native engine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kstreams.config import Config
from kstreams.runtime.spark import engine
from tests.spark.code import orders
from tests.spark.code.test_programs_on_kafka import FINAL, INPUTS, LEFT_JOIN, STATELESS, UPDATES, rows
from tests.spark.running import Application
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1800)]

OUTPUTS = [*STATELESS, *UPDATES, *FINAL, LEFT_JOIN, "by-item", "by-amount", "small-or-other"]


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_all_forms_of_programs_give_the_results_of_the_native_engine_with_their_times(
    spark: Any, kafka: Any, tmp_path: Path, guarantee: str
) -> None:
    delete_everything(kafka.bootstrap_servers)
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "spark.kstreams.path": "relational",
        "spark.kstreams.max.records": 400,
        "processing.guarantee": guarantee,
    }
    app = Application(spark, tmp_path, orders.topology, INPUTS | dict.fromkeys(OUTPUTS, (bytes, bytes)), **settings)
    app.create(*INPUTS, *OUTPUTS)
    app.write(rows(1, 400))
    decisions = engine.explain(app.topology, Config.of(app.settings))
    assert {row.path for row in decisions if "articles" not in row.operator} <= {"relational", "task"}
    app.run_natively()
    app.run()
    for topic in STATELESS:
        assert [Counter(of) for of in app.partitions(topic)] == [Counter(of) for of in app.partitions(topic, "")], topic
    for topic in UPDATES:
        assert app.table(topic) == app.table(topic, ""), topic
    for topic in FINAL:
        assert Counter(app.rows(topic)) == Counter(app.rows(topic, "")), topic
    assert not Counter(app.rows(LEFT_JOIN)) - Counter(app.rows(LEFT_JOIN, ""))
