"""The dashboard and the alerts ask in the language of Prometheus, for metrics that applications have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
from prometheus_client import CollectorRegistry

from kstreams.metrics.catalogue import TEMPLATES
from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.metrics.template import MetricName
from tests.docs.pages import ROOT

BOARD = json.loads((ROOT / "docs" / "grafana.json").read_text())
IN_PANELS = [(panel["title"], target["expr"]) for panel in BOARD["panels"] for target in panel["targets"]]
ALERTS = re.findall(r"^\| ([^|]+) \| `([^`]+)`", (ROOT / "docs" / "how-to" / "operations.md").read_text(), re.MULTILINE)
IN_ALERTS = [(name, query) for name, query in ALERTS if "kafka_streams" in query]


class One:
    """Has these metrics."""

    def __init__(self, found: dict[MetricName, float | str]) -> None:
        self._found = found

    def metrics(self) -> dict[MetricName, float | str]:
        return self._found


def metrics_in(query: str) -> set[str]:
    return set(re.findall(r"kafka_streams_\w+", query))


def exported() -> Iterator[str]:
    """The names of all samples, exactly as Prometheus reads them."""
    for template in TEMPLATES.values():
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(One({template.tagged(()): 1.0})))
        yield from (sample.name for family in registry.collect() for sample in family.samples)


EXPORTED = frozenset(exported())


def test_the_dashboard_is_what_the_code_writes() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "dashboard.py"), "--check"], check=False, cwd=ROOT)
    assert done.returncode == 0, "write it anew with `make docs`"


@pytest.mark.parametrize(("what", "query"), IN_PANELS + IN_ALERTS)
def test_every_query_can_be_parsed_and_asks_for_metrics_that_there_are(what: str, query: str) -> None:
    parsed: Any = promql_parser.parse(query)
    assert parsed is not None
    assert metrics_in(query)
    assert metrics_in(query) <= EXPORTED, what


def test_alerts_rise_from_zero() -> None:
    """What begins with the first event has no increase at that event: the first dropped records would be missed."""
    counted = [name for _, query in IN_ALERTS if "increase(" in query for name in metrics_in(query)]
    assert not [name for name in counted if "by_reason" in name]


def test_the_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places) == 23
    assert len(IN_ALERTS) >= 10
