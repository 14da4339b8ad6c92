"""Joins by retention in tasks on Spark: in steps of any size, the results of the native engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.joins.retained_app import topology
from tests.joins.test_retained_on_engines import INPUTS, OUTPUTS, TYPES, rows
from tests.spark.running import IN_ONE_STEP, Application

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("size", [7, IN_ONE_STEP])
def test_spark_gives_the_results_of_the_native_engine(spark: Any, tmp_path: Path, size: int) -> None:
    app = Application(spark, tmp_path, topology, TYPES, **{"spark.kstreams.max.records": size})
    app.create(*INPUTS).write(rows(60, keys=4, seed=11))
    app.run()
    app.run_natively()
    for topic in OUTPUTS:
        assert app.rows(topic)
        assert sorted(app.rows(topic)) == sorted(app.rows(topic, ""))
