"""`PrometheusCollector`: the metrics of an application for prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kstreams.metrics.catalogue import template_of
from kstreams.metrics.export import MeasuredApplication, exported_name, labels_of, measured
from kstreams.metrics.template import MetricKind, MetricTemplate
from kstreams.metrics.values import MetricValue

_SUFFIXES = {MetricKind.COUNTER: "_total", MetricKind.GAUGE: "", MetricKind.TEXT: "_info"}
_TYPES = {MetricKind.COUNTER: "counter", MetricKind.GAUGE: "gauge", MetricKind.TEXT: "info"}


class PrometheusCollector(Collector):
    """Reads the metrics of applications at each scrape. The names are those of JMX exporters for Kafka Streams.

    `process-total` of `stream-thread-metrics` becomes `kafka_streams_stream_thread_metrics_process_total`, and tags
    become labels. Needs the extra `metrics`.

    Parameters
    ----------
    *applications : MeasuredApplication
        All applications of a registry go into one collector, because a metric may be described once. The label
        `client_id` distinguishes their values: it is `client.id`, or the application id if `client.id` is not set.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> import kstreams as ks
    >>> registry = CollectorRegistry()
    >>> registry.register(PrometheusCollector(ks.KafkaStreams(ks.Topology(), {"application.id": "shop"})))
    >>> [line] = [line for line in generate_latest(registry).decode().splitlines() if "_state_info{" in line]
    >>> line
    'kafka_streams_stream_metrics_state_info{client_id="shop",state="CREATED"} 1.0'
    """

    def __init__(self, *applications: MeasuredApplication) -> None:
        self._applications = applications

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering the collector does not read metrics."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the present metrics."""
        families: dict[MetricTemplate, Metric] = {}
        for name, value in measured(self._applications).items():
            template = template_of(name)
            if template not in families:
                families[template] = _family(template)
            _add(families[template], template, labels_of(name), value)
        yield from families.values()


def sample_name(template: MetricTemplate) -> str:
    """Return the name of a metric's samples.

    Examples
    --------
    >>> from kstreams.metrics.catalogue import FAILED_STREAM_THREADS
    >>> sample_name(FAILED_STREAM_THREADS)
    'kafka_streams_stream_metrics_failed_stream_threads_total'
    """
    return _family_name(template) + _SUFFIXES[template.kind]


def _family_name(template: MetricTemplate) -> str:
    return exported_name(template).removesuffix(_SUFFIXES[template.kind])


def _family(template: MetricTemplate) -> Metric:
    return Metric(_family_name(template), template.description, _TYPES[template.kind])


def _add(family: Metric, template: MetricTemplate, labels: dict[str, str], value: MetricValue) -> None:
    if template.kind is MetricKind.TEXT:
        family.add_sample(sample_name(template), {**labels, template.name.replace("-", "_"): str(value)}, 1)
    else:
        family.add_sample(sample_name(template), labels, float(value))
