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

from kstreams.metrics import catalogue
from kstreams.metrics.prometheus import sample_name
from kstreams.metrics.template import MetricKind, MetricTemplate, RecordingLevel, Unit
from kstreams.state.rows.store_measures import StoreOperation

FILE = Path(__file__).parents[1] / "docs" / "grafana.json"
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7  # of 24 columns


class Query(NamedTuple):
    """A PromQL query over a metric of the catalogue, and the legend of its lines."""

    metric: MetricTemplate
    promql: str
    legend: str
    unit: str


class Panel(NamedTuple):
    """A graph. Its unit is that of its first query."""

    title: str
    queries: tuple[Query, ...]


_UNITS = {
    Unit.NUMBER: "short",
    Unit.TEXT: "short",  # the number of processes in each state
    Unit.RATIO: "percentunit",
    Unit.BYTES: "bytes",
    Unit.MILLISECONDS: "ms",
}
_RATE = "ops"


def _panel(title: str, *queries: Query) -> Panel:
    is_debug = all(query.metric.level is RecordingLevel.DEBUG for query in queries)
    return Panel(f"{title} (DEBUG)" if is_debug else title, queries)


def _query(metric: MetricTemplate, aggregation: str, by: str, *, over: str = "", legend: str = "") -> Query:
    """Return a query that aggregates a metric by labels.

    Parameters
    ----------
    metric : MetricTemplate
    aggregation : str
        Such as `sum`.
    by : str
        Labels, separated by commas: labels of the metric, or `instance`, which Prometheus adds.
    over : str
        A function of PromQL and its range, such as `rate 1m`.
    legend : str
        By default, the label.
    """
    labels = {label.replace("-", "_") for label in metric.labels} | {"instance"}
    if metric.kind is MetricKind.TEXT:
        labels.add(metric.name)
    if unknown := set(by.split(", ")) - labels:
        raise ValueError(f"{metric.name} has no label {', '.join(unknown)}")
    series = sample_name(metric)
    if over:
        function, period = over.split()
        series = f"{function}({series}[{period}])"
    unit = _RATE if over.startswith("rate ") else _UNITS[metric.unit]
    return Query(metric, f"{aggregation} by ({by}) ({series})", legend or f"{{{{{by}}}}}", unit)


_BY_REASON = "processor_node_id, reason"
_REASON = "{{processor_node_id}}: {{reason}}"
_SHOWN_OPERATIONS = {StoreOperation.GET, StoreOperation.PUT, StoreOperation.FETCH, StoreOperation.FLUSH}
PANELS = (
    _panel("Records a second", _query(catalogue.THREAD_PROCESS.events.total, "sum", "instance", over="rate 1m")),
    _panel("Lag", _query(catalogue.RECORDS_LAG, "sum", "topic")),
    _panel("Lag in time", _query(catalogue.RECORDS_LAG_MS, "max", "topic")),
    _panel(
        "Age of records when they are read or written",
        _query(catalogue.RECORD_E2E_LATENCY.avg, "max", "processor_node_id, topic_name", legend="{{topic_name}}"),
    ),
    _panel(
        "Dropped records a second",
        _query(catalogue.DROPPED_RECORDS_BY_REASON, "sum", _BY_REASON, over="rate 5m", legend=_REASON),
    ),
    _panel(
        "Dropped records since the start",  # the first of a kind have no rate: Prometheus has no counter before them
        _query(catalogue.DROPPED_RECORDS_BY_REASON, "sum", _BY_REASON, legend=_REASON),
    ),
    _panel("Processes by state", _query(catalogue.CLIENT_STATE, "count", "state")),
    _panel("Records written a second", _query(catalogue.RECORDS_PRODUCED, "sum", "topic_name", over="rate 1m")),
    _panel(
        "What threads do",
        *(
            _query(activity.ratio, "avg", "thread_id", legend=f"{{{{thread_id}}}} {action}")
            for action, activity in (
                ("poll", catalogue.THREAD_POLL),
                ("process", catalogue.THREAD_PROCESS),
                ("punctuate", catalogue.THREAD_PUNCTUATE),
                ("commit", catalogue.THREAD_COMMIT),
            )
        ),
    ),
    _panel("Time of a commit", _query(catalogue.THREAD_COMMIT.latency.max, "max", "thread_id")),
    _panel("Uncommitted changes", _query(catalogue.UNCOMMITTED_BYTES, "sum", "task_id")),
    _panel("Stores on disk", _query(catalogue.TOTAL_SST_FILES_SIZE, "sum", "task_id")),
    _panel("Rows of stores", _query(catalogue.ESTIMATE_NUM_KEYS, "sum", "rocksdb_state_id")),
    _panel("Look-ups answered by live values", _query(catalogue.HIT_RATIO.avg, "avg", "record_cache_id")),
    _panel(
        "Mean time of store operations",
        *(
            _query(metrics.latency.avg, "avg", "state_id", legend=f"{{{{state_id}}}} {operation.value}")
            for operation, metrics in catalogue.OPERATIONS.items()
            if operation in _SHOWN_OPERATIONS
        ),
    ),
    _panel("Records behind stream time", _query(catalogue.RECORD_LATENESS.max, "max", "task_id")),
    _panel(
        "Memory of stores",
        _query(catalogue.CACHE_SIZE_BYTES, "sum", "instance", legend="{{instance}} live values"),
        _query(catalogue.BLOCK_CACHE_USAGE, "max", "instance", legend="{{instance}} block cache"),
        _query(catalogue.CUR_SIZE_ALL_MEM_TABLES, "sum", "instance", legend="{{instance}} memtables"),
    ),
    _panel(
        "Tasks that are restored",
        _query(catalogue.ACTIVE_RESTORING_TASKS, "sum", "instance"),
        _query(catalogue.RESTORE_RECORDS_TOTAL, "sum", "instance", over="rate 1m", legend="{{instance}} records/s"),
    ),
    _panel(
        "Records that stores lack",
        _query(catalogue.TASK_REMAINING_RECORDS, "sum", "task_id"),
        _query(catalogue.STANDBY_LAG, "max", "instance, task_id", legend="{{instance}} standby {{task_id}}"),
    ),
    _panel(
        "Damage on disk",
        _query(catalogue.REBUILDS, "sum", "instance", over="increase 1h", legend="{{instance}} rebuilt tasks"),
        _query(catalogue.BACKGROUND_ERRORS, "sum", "instance", legend="{{instance}} errors of RocksDB"),
    ),
    _panel(
        "Threads",
        _query(catalogue.ALIVE_STREAM_THREADS, "sum", "instance", legend="{{instance}} alive"),
        _query(catalogue.FAILED_STREAM_THREADS, "sum", "instance", legend="{{instance}} failed"),
    ),
    _panel("Stalled tasks", _query(catalogue.STALLS, "sum", "instance", over="increase 10m")),
    _panel("Tasks that came back", _query(catalogue.REASSIGNED, "sum", "instance", over="increase 10m")),
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
        "fieldConfig": {"defaults": {"unit": panel.queries[0].unit, "min": 0}, "overrides": []},
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
