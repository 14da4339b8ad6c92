"""The topics that Spark writes say of what types their records are, as those of the native engine do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.cli import main
from kstreams.log import open_log
from kstreams.log.topic_types import TopicTypes, types_of
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

WRITTEN = {
    "lengths": TopicTypes("str", "int"),
    "described": TopicTypes("str", "json"),
    "minutes": TopicTypes("windowed(str, 60000)", "int"),
}


def many_types() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    lines.map_values(len, value=int).to("lengths")
    lines.map_values(lambda line: {"n": len(line)}, value=dict).to("described")
    minutes = lines.group_by_key().windowed_by(ks.TimeWindows(size=60_000)).count()
    minutes.to_stream().to("minutes")
    return builder


@pytest.fixture
def app(spark: Any, tmp_path: Path) -> Application:
    app = Application(spark, tmp_path, many_types(), {"lines": (str, str)}).create("lines", partitions=1)
    return app.write([Row("lines", "a", "the cat", 61_000)])


def noted(app: Application, prefix: str) -> dict[str, TopicTypes]:
    with open_log(app.folder / "log") as log, log.admin() as admin:
        return {topic: types_of(admin.describe_topic(prefix + topic).config) for topic in WRITTEN}


@pytest.mark.parametrize("path", ["auto", "task"])
def test_topics_that_are_made_get_the_types_that_the_native_engine_notes(app: Application, path: str) -> None:
    app.run(**{"spark.kstreams.path": path})
    app.run_natively()
    assert noted(app, "spark-") == noted(app, "") == WRITTEN


def test_topics_that_are_there_get_them_too(app: Application) -> None:
    app.create(*(f"spark-{topic}" for topic in WRITTEN))
    app.run()
    assert noted(app, "spark-") == WRITTEN


def test_the_command_line_shows_records_by_them(app: Application, capsys: pytest.CaptureFixture[str]) -> None:
    app.run()
    given = ["--log-dir", str(app.folder / "log"), "--from-beginning", "--until-end"]
    shown = []
    for topic in WRITTEN:
        assert main(["consume", f"spark-{topic}", *given]) == 0
        shown.append(capsys.readouterr().out.split("\t", 2)[2].strip())
    assert shown == ["a\t7", 'a\t{"n":7}', "a@1970-01-01T00:01:00.000Z/1970-01-01T00:02:00.000Z\t1"]
