"""The metrics of applications as exporters need them: names, labels and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kstreams.metrics.template import MetricName, MetricTemplate
from kstreams.metrics.values import MetricValue


def exported_name(template: MetricTemplate) -> str:
    """Return the name of a metric outside of Python.

    Examples
    --------
    >>> from kstreams.metrics.catalogue import THREAD_PROCESS
    >>> exported_name(THREAD_PROCESS.events.total)
    'kafka_streams_stream_thread_metrics_process_total'
    """
    return f"kafka_streams_{template.group}_{template.name}".replace("-", "_").replace(".", "_")


def labels_of(name: MetricName) -> dict[str, str]:
    """Return the tags of a metric, with names that are valid for labels.

    Examples
    --------
    >>> labels_of(MetricName("stream-thread-metrics", "process-total", (("thread-id", "app-StreamThread-1"),)))
    {'thread_id': 'app-StreamThread-1'}
    """
    return {tag.replace("-", "_"): _as_utf8(value) for tag, value in name.tags}


def _as_utf8(text: str) -> str:
    """Replace surrogates, which come from bytes of the environment: a single one would make all metrics unreadable."""
    return text.encode(errors="replace").decode()


class MeasuredApplication(Protocol):
    """An application with metrics: a `KafkaStreams`, or the handle of a run on Spark (`ks.spark.start`)."""

    def metrics(self) -> Mapping[MetricName, MetricValue]:
        """Return the present values of all metrics."""
        ...


def measured(applications: Iterable[MeasuredApplication]) -> dict[MetricName, MetricValue]:
    """Return the metrics of several applications.

    If two have the same names, as after a restart in one process, the later application wins.

    Examples
    --------
    >>> import kstreams as ks
    >>> applications = [ks.KafkaStreams(ks.Topology(), {"application.id": name}) for name in ("shop", "till")]
    >>> [dict(name.tags)["client-id"] for name in measured(applications) if name.name == "state"]
    ['shop', 'till']
    """
    values: dict[MetricName, MetricValue] = {}
    for application in applications:
        values |= application.metrics()
    return values
