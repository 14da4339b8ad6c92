"""Spark runs nothing while no records come, so idle input is noticed with the next step; a warning says so."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.program import program_of
from kstreams.runtime.spark.settings import SparkSettings

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("idle", [30, None])
def test_idle_sources_are_named_in_a_warning(
    idle: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str, idle=idle).to("out")
    topology, config = builder.build(), Config.of({"application.id": "app"})
    layout = lay_out(topology, "app", {"in": 1})
    with caplog.at_level(logging.WARNING):
        program_of(topology, config, SparkSettings.of(config), layout, {"in": 1}, str(tmp_path))
    said = "KSTREAM-SOURCE-0000000000: idle input closes nothing on Spark before the next record"
    assert (said in caplog.text) == (idle is not None)
