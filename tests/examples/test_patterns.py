"""The seven patterns of stream processing and the three classics: both engines put out what plain Python computes.

(Word count, the third classic, has its tests in `test_wordcount.py`.)
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kstreams.app import load_app
from kstreams.cli import main
from kstreams.config import Config
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from tests.examples import patterns
from tests.examples.conftest import EXAMPLES, Terminal
from tests.examples.patterns import Expected
from tests.spark.conftest import spark

__all__ = ["spark"]  # the fixture: one session for all tests


class Example(NamedTuple):
    """An application, and what plain Python computes from the same rows."""

    app: str
    expected: Callable[[], Expected]


EXAMPLE_APPS = (
    Example("patterns/log_routing.py", patterns.log_routing),
    Example("patterns/price_range.py", patterns.price_range),
    Example("patterns/top_stocks.py", patterns.top_stocks),
    Example("patterns/click_profile.py", patterns.click_profile),
    Example("patterns/search_clicks.py", patterns.search_clicks),
    Example("patterns/out_of_order.py", patterns.out_of_order),
    Example("patterns/reprocessing.py:v1", lambda: patterns.visits("visits-v1", str)),
    Example("patterns/reprocessing.py:v2", lambda: patterns.visits("visits-v2", lambda n: n.strip().lower())),
    Example("classics/stock_statistics.py", patterns.stock_statistics),
    Example("classics/click_enrichment.py", patterns.click_enrichment),
)
every_example = pytest.mark.parametrize("example", EXAMPLE_APPS, ids=lambda example: example.app)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log that holds the sample data, in topics of one partition."""
    folder = tmp_path_factory.mktemp("patterns")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for data in sorted((EXAMPLES / "data").glob("*.jsonl")):
            with data.open() as rows:
                patch.setattr("sys.stdin", rows)
                assert main(["topics", "create", data.stem]) == 0
                assert main(["produce", data.stem, "--json"]) == 0
    return folder


@pytest.fixture
def loaded(sample: Path, terminal: Terminal) -> Terminal:
    shutil.copytree(sample, terminal.folder, dirs_exist_ok=True)
    return terminal


@every_example
def test_natively(example: Example, loaded: Terminal) -> None:
    loaded.run("kstreams", "run", str(EXAMPLES / example.app), "--until-end", "-c", "application.id=example")
    check(example, loaded)


@pytest.mark.spark
@every_example
def test_on_spark(example: Example, loaded: Terminal, spark: Any) -> None:
    from kstreams.runtime.spark.runner import SparkRunner

    config = {
        "application.id": "example",
        "log.dir": str(loaded.folder / ".kstreams" / "log"),
        "spark.kstreams.checkpoint": str(loaded.folder / "checkpoint"),
        "spark.kstreams.delta": "none",
    }
    with open_log(config["log.dir"]) as log:
        topology = load_app(EXAMPLES / example.app).topology
        SparkRunner(topology, Config.of(config), spark, log, SystemClock()).run(until_end=True)
    check(example, loaded, prefix="spark-")


def test_two_versions_run_side_by_side(loaded: Terminal) -> None:
    for version in ("v1", "v2"):
        app = str(EXAMPLES / "patterns" / "reprocessing.py") + f":{version}"
        loaded.run("kstreams", "run", app, "--until-end", "-c", f"application.id=visits-{version}")
    assert "ada " in dict(rows_of(loaded, "visits-v1"))
    assert dict(rows_of(loaded, "visits-v2")).keys() == {"ada", "bo", "cy", "dee"}


def check(example: Example, terminal: Terminal, prefix: str = "") -> None:
    for topic, expected in example.expected().items():
        assert expected
        rows = rows_of(terminal, prefix + topic)
        if isinstance(expected, Counter):
            assert Counter(value if isinstance(value, str) else patterns.text(value) for _, value in rows) == expected
        else:
            assert rounded(dict(rows)) == rounded(expected)


def rows_of(terminal: Terminal, topic: str) -> list[tuple[str, Any]]:
    options = ("--value-type", "int") if "visits" in topic else ()
    return [(row["key"], row["value"]) for row in terminal.rows(topic, *options)]


def rounded(value: Any) -> Any:
    """The same with floats to nine digits: sums may be taken in another order."""
    return json.loads(json.dumps(value), parse_float=lambda number: round(float(number), 9))
