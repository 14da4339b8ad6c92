"""Headers in a Spark session: what passes the relational path, and what tasks behind it read and change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from tests.headers.recorded import INPUT, headers_of
from tests.headers.test_on_spark import marked
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark


def both(builder: ks.StreamsBuilder) -> None:
    """Half of the records on the relational path; the other half through tasks, behind a repartition topic."""
    stream = builder.stream("a", key=str, value=str)
    stream.filter(lambda key, value: value is not None).map_values(ks.value + "!").to("plain", value=str, name="plain")
    marked(stream.select_key(ks.key + "!").repartition(name="again")).to("out", name="out")


def paths_of(topology: ks.Topology, settings: dict[str, Any]) -> dict[str, str]:
    rows = engine.explain(topology, Config.of({"application.id": "app", **settings}))
    return {row.operator: row.path for row in rows if row.operator in ("plain", "out")}


def test_a_session_keeps_headers_on_both_paths(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    both(builder)
    types = {name: (str, str) for name in ("a", "plain", "out")}
    topology, path = builder.build(), {"spark.kstreams.path": "relational"}
    assert paths_of(topology, path) == {"plain": "relational", "out": "task"}
    application = Application(spark, tmp_path, topology, types, **path).create(*types, partitions=1)
    application.write(
        Row(topic, key, value, time, None, headers_of(header))
        for topic, key, value, time, header in INPUT
        if topic == "a"
    )
    application.run()
    application.run_natively()
    for topic in ("plain", "out"):
        found = application.rows(topic, headers=True)
        assert found == application.rows(topic, "", headers=True)
        assert any(headers for *_, headers in found)
