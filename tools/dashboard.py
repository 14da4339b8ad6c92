"""Writes docs/grafana.json, a dashboard of Grafana for applications.

python tools/dashboard.py            # write it
python tools/dashboard.py --check    # fail when it is not what it would write
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "docs" / "grafana.json"
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7  # of 24 columns


class Panel(NamedTuple):
    """A graph: its queries and what a line of each is called."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _panel(title: str, unit: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, unit, queries)


_S, _NODE = "kafka_streams_stream", "kafka_streams_stream_processor_node_metrics"
_INSTANCE = "{{instance}}"
PANELS = (
    _panel("Records a second", "ops", (f"sum by (instance) (rate({_S}_thread_metrics_process_total[1m]))", _INSTANCE)),
    _panel("Lag", "short", ("sum by (topic) (kafka_streams_consumer_fetch_manager_metrics_records_lag)", "{{topic}}")),
    _panel(
        "Lag in time",
        "ms",
        ("max by (topic) (kafka_streams_consumer_fetch_manager_metrics_records_lag_ms)", "{{topic}}"),
    ),
    _panel(
        "Age of records when they are read or written",
        "ms",
        (f"max by (processor_node_id, topic_name) ({_NODE}_record_e2e_latency_avg)", "{{topic_name}}"),
    ),
    _panel(
        "Dropped records a second",
        "ops",
        (
            f"sum by (processor_node_id, reason) (rate({_NODE}_dropped_records_by_reason_total[5m]))",
            "{{processor_node_id}}: {{reason}}",
        ),
    ),
    _panel(
        "Dropped records since the start",  # the first of a kind have no rate: Prometheus sees no counter before them
        "short",
        (
            f"sum by (processor_node_id, reason) ({_NODE}_dropped_records_by_reason_total)",
            "{{processor_node_id}}: {{reason}}",
        ),
    ),
    _panel("Processes by state", "short", (f"count by (state) ({_S}_metrics_state_info)", "{{state}}")),
    _panel(
        "Records written a second",
        "ops",
        (f"sum by (topic_name) (rate({_S}_topic_metrics_records_produced_total[1m]))", "{{topic_name}}"),
    ),
    _panel(
        "What threads do",
        "percentunit",
        *(
            (f"avg by (thread_id) ({_S}_thread_metrics_{what}_ratio)", f"{{{{thread_id}}}} {what}")
            for what in ("poll", "process", "punctuate", "commit")
        ),
    ),
    _panel("Time of a commit", "ms", (f"max by (thread_id) ({_S}_thread_metrics_commit_latency_max)", "{{thread_id}}")),
    _panel("Uncommitted changes", "bytes", (f"sum by (task_id) ({_S}_task_metrics_uncommitted_bytes)", "{{task_id}}")),
    _panel("Stores on disk", "bytes", (f"sum by (task_id) ({_S}_state_metrics_total_sst_files_size)", "{{task_id}}")),
    _panel(
        "Rows of stores",
        "short",
        (f"sum by (rocksdb_state_id) ({_S}_state_metrics_estimate_num_keys)", "{{rocksdb_state_id}}"),
    ),
    _panel(
        "Look-ups answered by live values (DEBUG)",
        "percentunit",
        (f"avg by (record_cache_id) ({_S}_record_cache_metrics_hit_ratio_avg)", "{{record_cache_id}}"),
    ),
    _panel(
        "Mean time of store operations (DEBUG)",
        "ms",
        *(
            (f"avg by (state_id) ({_S}_state_metrics_{what}_latency_avg)", f"{{{{state_id}}}} {what}")
            for what in ("get", "put", "fetch", "flush")
        ),
    ),
    _panel(
        "Records behind stream time (DEBUG)",
        "ms",
        (f"max by (task_id) ({_S}_task_metrics_record_lateness_max)", "{{task_id}}"),
    ),
    _panel(
        "Memory of stores",
        "bytes",
        (f"sum by (instance) ({_S}_task_metrics_cache_size_bytes_total)", "{{instance}} live values"),
        (f"max by (instance) ({_S}_state_metrics_block_cache_usage)", "{{instance}} block cache"),
        (f"sum by (instance) ({_S}_state_metrics_cur_size_all_mem_tables)", "{{instance}} memtables"),
    ),
    _panel(
        "Tasks that are restored",
        "short",
        (f"sum by (instance) ({_S}_state_updater_metrics_active_restoring_tasks)", "{{instance}}"),
        (f"sum by (instance) (rate({_S}_state_updater_metrics_restore_records_total[1m]))", "{{instance}} records/s"),
    ),
    _panel(
        "Records that stores lack",
        "short",
        (f"sum by (task_id) ({_S}_task_metrics_restore_remaining_records_total)", "{{task_id}}"),
        (f"max by (instance, task_id) ({_S}_task_metrics_standby_lag)", "{{instance}} standby {{task_id}}"),
    ),
    _panel(
        "Damage on disk",
        "short",
        (f"sum by (instance) (increase({_S}_metrics_rebuilds_total[1h]))", "{{instance}} rebuilt tasks"),
        (f"sum by (instance) ({_S}_state_metrics_background_errors)", "{{instance}} errors of RocksDB"),
    ),
    _panel(
        "Threads",
        "short",
        (f"sum by (instance) ({_S}_metrics_alive_stream_threads)", "{{instance}} alive"),
        (f"sum by (instance) ({_S}_metrics_failed_stream_threads_total)", "{{instance}} failed"),
    ),
    _panel("Stalled tasks", "short", (f"sum by (instance) (increase({_S}_metrics_stalls_total[10m]))", "{{instance}}")),
    _panel(
        "Tasks that came back",
        "short",
        (f"sum by (instance) (increase({_S}_metrics_reassigned_total[10m]))", "{{instance}}"),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it; it asks for a data source."""
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
            {"refId": chr(ord("A") + place), "datasource": source, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(panel.queries)
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
