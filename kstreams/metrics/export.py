"""`MeasuredApplication`: whose metrics can be read: an application that runs natively, or on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Protocol

from kstreams.metrics.catalogue import NODE, TEMPLATES, MetricKind, MetricName, MetricTemplate

_SENSORS = {
    statistic: MetricTemplate(
        NODE, f"sensor-{statistic}", MetricKind.GAUGE, f"A sensor of a processor: {meaning}.", ours=True
    )
    for statistic, meaning in {"total": "the sum", "count": "how many values", "max": "the greatest value"}.items()
}
"""Whatever sensors are called, these are their names outside: not every name of a sensor may be one of a metric."""


def exported_templates() -> Iterator[MetricTemplate]:
    """All metrics that there are outside."""
    return chain(TEMPLATES.values(), _SENSORS.values())


def exported(metric: MetricName) -> tuple[MetricTemplate, dict[str, str]]:
    """The metric that a value is one of outside, and its labels; the name of a sensor is one of them.

    Examples
    --------
    >>> metric = MetricName("stream-processor-node-metrics", "till: €-total", (("sensor", "till: €"),))
    >>> template, labels = exported(metric)
    >>> template.name, labels
    ('sensor-total', {'sensor': 'till: €'})
    """
    is_sensor = metric.tag("sensor") is not None
    template = _SENSORS[metric.name.rpartition("-")[2]] if is_sensor else TEMPLATES[metric.group, metric.name]
    return template, labels_of(metric)


def exported_name(group: str, name: str) -> str:
    """The name of a metric, without its tags.

    Examples
    --------
    >>> exported_name("stream-thread-metrics", "process-total")
    'kafka_streams_stream_thread_metrics_process_total'
    """
    return f"kafka_streams_{group}_{name}".replace("-", "_").replace(".", "_")


def labels_of(name: MetricName) -> dict[str, str]:
    """Its tags, under names that may be labels.

    Examples
    --------
    >>> labels_of(MetricName("stream-thread-metrics", "process-total", (("thread-id", "app-StreamThread-1"),)))
    {'thread_id': 'app-StreamThread-1'}
    """
    return {tag.replace("-", "_"): _as_utf8(value) for tag, value in name.tags}


def _as_utf8(text: str) -> str:
    """Without surrogates, as bytes of the environment may have left: one would make all metrics unreadable."""
    return text.encode(errors="replace").decode()


class MeasuredApplication(Protocol):
    """A `KafkaStreams`, or the handle of a run on Spark (`ks.spark.start`)."""

    def metrics(self) -> Mapping[MetricName, float | str]:
        """The values of all metrics now."""
        ...


def measured(applications: Iterable[MeasuredApplication]) -> dict[MetricName, float | str]:
    """The metrics of several; of two that bear the same names, as after a restart in one process, those of the later.

    Examples
    --------
    >>> import kstreams as ks
    >>> two = [ks.KafkaStreams(ks.Topology(), {"application.id": name}) for name in ("shop", "till")]
    >>> [dict(name.tags)["client-id"] for name in measured(two) if name.name == "state"]
    ['shop', 'till']
    """
    values: dict[MetricName, float | str] = {}
    for application in applications:
        values |= application.metrics()
    return values
