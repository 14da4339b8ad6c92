"""Writes docs/grafana.json, a dashboard of Grafana over the metrics of `kstreams/metrics/catalogue.py`.

python tools/dashboard.py            # write it
python tools/dashboard.py --check    # fail if the file is out of date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.metrics.catalogue import (
    CACHE,
    CLIENT,
    CONSUMER,
    NODE,
    STATE,
    TASK,
    TEMPLATES,
    THREAD,
    TOPIC,
    UPDATER,
    MetricKind,
    MetricTemplate,
    RecordingLevel,
)
from kstreams.metrics.prometheus import sample_name

FILE = Path(__file__).parents[1] / "docs" / "grafana.json"
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7  # of 24 columns


class Query(NamedTuple):
    """A PromQL query over a metric of the catalogue, and the legend of its lines."""

    metric: MetricTemplate
    promql: str
    legend: str


class Panel(NamedTuple):
    """A graph."""

    title: str
    unit: str
    queries: tuple[Query, ...]


def _panel(title: str, unit: str, *queries: Query) -> Panel:
    is_debug = all(query.metric.level is RecordingLevel.DEBUG for query in queries)
    return Panel(f"{title} (DEBUG)" if is_debug else title, unit, queries)


def _query(group: str, name: str, aggregation: str, by: str, *, over: str = "", legend: str = "") -> Query:
    """Return a query that aggregates a metric by labels.

    Parameters
    ----------
    group, name : str
        A metric of the catalogue.
    aggregation : str
        Such as `sum`.
    by : str
        Labels, separated by commas: labels of the metric, or `instance`, which Prometheus adds.
    over : str
        A function of PromQL and its range, such as `rate 1m`.
    legend : str
        By default, the label.
    """
    metric = TEMPLATES[group, name]
    labels = {label.replace("-", "_") for label in metric.labels} | {"instance"}
    if metric.kind is MetricKind.TEXT:
        labels.add(name)
    if unknown := set(by.split(", ")) - labels:
        raise ValueError(f"{name} has no label {', '.join(unknown)}")
    series = sample_name(metric)
    if over:
        function, period = over.split()
        series = f"{function}({series}[{period}])"
    return Query(metric, f"{aggregation} by ({by}) ({series})", legend or f"{{{{{by}}}}}")


_BY_REASON = "processor_node_id, reason"
_REASON = "{{processor_node_id}}: {{reason}}"
PANELS = (
    _panel("Records a second", "ops", _query(THREAD, "process-total", "sum", "instance", over="rate 1m")),
    _panel("Lag", "short", _query(CONSUMER, "records-lag", "sum", "topic")),
    _panel("Lag in time", "ms", _query(CONSUMER, "records-lag-ms", "max", "topic")),
    _panel(
        "Age of records when they are read or written",
        "ms",
        _query(NODE, "record-e2e-latency-avg", "max", "processor_node_id, topic_name", legend="{{topic_name}}"),
    ),
    _panel(
        "Dropped records a second",
        "ops",
        _query(NODE, "dropped-records-by-reason-total", "sum", _BY_REASON, over="rate 5m", legend=_REASON),
    ),
    _panel(
        "Dropped records since the start",  # the first of a kind have no rate: Prometheus has no counter before them
        "short",
        _query(NODE, "dropped-records-by-reason-total", "sum", _BY_REASON, legend=_REASON),
    ),
    _panel("Processes by state", "short", _query(CLIENT, "state", "count", "state")),
    _panel(
        "Records written a second", "ops", _query(TOPIC, "records-produced-total", "sum", "topic_name", over="rate 1m")
    ),
    _panel(
        "What threads do",
        "percentunit",
        *(
            _query(THREAD, f"{action}-ratio", "avg", "thread_id", legend=f"{{{{thread_id}}}} {action}")
            for action in ("poll", "process", "punctuate", "commit")
        ),
    ),
    _panel("Time of a commit", "ms", _query(THREAD, "commit-latency-max", "max", "thread_id")),
    _panel("Uncommitted changes", "bytes", _query(TASK, "uncommitted-bytes", "sum", "task_id")),
    _panel("Stores on disk", "bytes", _query(STATE, "total-sst-files-size", "sum", "task_id")),
    _panel("Rows of stores", "short", _query(STATE, "estimate-num-keys", "sum", "rocksdb_state_id")),
    _panel("Look-ups answered by live values", "percentunit", _query(CACHE, "hit-ratio-avg", "avg", "record_cache_id")),
    _panel(
        "Mean time of store operations",
        "ms",
        *(
            _query(STATE, f"{operation}-latency-avg", "avg", "state_id", legend=f"{{{{state_id}}}} {operation}")
            for operation in ("get", "put", "fetch", "flush")
        ),
    ),
    _panel("Records behind stream time", "ms", _query(TASK, "record-lateness-max", "max", "task_id")),
    _panel(
        "Memory of stores",
        "bytes",
        _query(TASK, "cache-size-bytes-total", "sum", "instance", legend="{{instance}} live values"),
        _query(STATE, "block-cache-usage", "max", "instance", legend="{{instance}} block cache"),
        _query(STATE, "cur-size-all-mem-tables", "sum", "instance", legend="{{instance}} memtables"),
    ),
    _panel(
        "Tasks that are restored",
        "short",
        _query(UPDATER, "active-restoring-tasks", "sum", "instance"),
        _query(UPDATER, "restore-records-total", "sum", "instance", over="rate 1m", legend="{{instance}} records/s"),
    ),
    _panel(
        "Records that stores lack",
        "short",
        _query(TASK, "restore-remaining-records-total", "sum", "task_id"),
        _query(TASK, "standby-lag", "max", "instance, task_id", legend="{{instance}} standby {{task_id}}"),
    ),
    _panel(
        "Damage on disk",
        "short",
        _query(CLIENT, "rebuilds-total", "sum", "instance", over="increase 1h", legend="{{instance}} rebuilt tasks"),
        _query(STATE, "background-errors", "sum", "instance", legend="{{instance}} errors of RocksDB"),
    ),
    _panel(
        "Threads",
        "short",
        _query(CLIENT, "alive-stream-threads", "sum", "instance", legend="{{instance}} alive"),
        _query(CLIENT, "failed-stream-threads", "sum", "instance", legend="{{instance}} failed"),
    ),
    _panel("Stalled tasks", "short", _query(CLIENT, "stalls-total", "sum", "instance", over="increase 10m")),
    _panel("Tasks that came back", "short", _query(CLIENT, "reassigned-total", "sum", "instance", over="increase 10m")),
)


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it. Grafana asks for the data source."""
    return {
        "title": "kstreams",
        "uid": "kstreams",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_json(number, panel) for number, panel in enumerate(PANELS)],
    }


def _json(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, _COLUMNS)
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": source,
                "expr": query.promql,
                "legendFormat": query.legend,
            }
            for place, query in enumerate(panel.queries)
        ],
    }


def main(arguments: Iterable[str]) -> int:
    text = json.dumps(dashboard(), indent=1) + "\n"
    if "--check" in arguments:
        return int(not FILE.exists() or FILE.read_text() != text)
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
