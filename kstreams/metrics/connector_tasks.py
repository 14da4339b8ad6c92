"""The metrics of the tasks of connectors in this process."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.connectors.task_status import TaskStatus
from kstreams.metrics import catalogue
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues


def connector_metrics(statuses: Mapping[str, Mapping[int, TaskStatus]], client_tags: Tags, now_ms: int) -> MetricValues:
    """Yield the metrics of all tasks, by connector and number of the task."""
    for connector, tasks in statuses.items():
        for number, status in tasks.items():
            tags = (*client_tags, ("connector", connector), ("task", str(number)))
            yield catalogue.CONNECTOR_STATUS.tagged(tags), status.state.value
            yield catalogue.CONNECTOR_RECORDS.tagged(tags), status.rows
            yield catalogue.CONNECTOR_BYTES.tagged(tags), status.size
            yield catalogue.CONNECTOR_RETRIES.tagged(tags), status.retries
            yield catalogue.CONNECTOR_COMMIT_AGE.tagged(tags), now_ms - status.committed_ms
            yield catalogue.CONNECTOR_WAITING_RECORDS.tagged(tags), status.waiting_rows
            yield catalogue.CONNECTOR_OLDEST_WAIT.tagged(tags), status.oldest_wait_ms
