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

from kstreams.metrics.names import exported_name
from kstreams.runtime.metrics.catalogue import TEMPLATES, MetricKind
from tests.docs.pages import ROOT

BOARD = json.loads((ROOT / "docs" / "grafana.json").read_text())
IN_PANELS = [(panel["title"], target["expr"]) for panel in BOARD["panels"] for target in panel["targets"]]
ALERTS = re.findall(r"^\| ([^|]+) \| `([^`]+)`", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
IN_ALERTS = [(name, query) for name, query in ALERTS if "kafka_streams" in query]


def metrics_in(query: str) -> set[str]:
    return set(re.findall(r"kafka_streams_\w+", query))


def exported() -> Iterator[str]:
    for (group, name), template in TEMPLATES.items():
        plain = exported_name(group, name)
        yield f"{plain}_info" if template.kind is MetricKind.TEXT else plain


def test_the_dashboard_is_what_the_code_writes() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "dashboard.py"), "--check"], check=False, cwd=ROOT)
    assert done.returncode == 0, "write it anew with `make docs`"


@pytest.mark.parametrize(("what", "query"), IN_PANELS + IN_ALERTS)
def test_every_query_can_be_parsed_and_asks_for_metrics_that_there_are(what: str, query: str) -> None:
    parsed: Any = promql_parser.parse(query)
    assert parsed is not None
    assert metrics_in(query)
    counters = {f"{name.removesuffix('_total')}_total" for name in exported()}
    assert metrics_in(query) <= {*exported(), *counters}, what


def test_the_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places) == 18
    assert len(IN_ALERTS) >= 8
