"""`PrometheusCollector`: the metrics of an application for prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kstreams.metrics.catalogue import MetricKind, MetricTemplate
from kstreams.metrics.export import MeasuredApplication, exported, exported_name, measured

_SUFFIXES = {MetricKind.COUNTER: "_total", MetricKind.GAUGE: "", MetricKind.TEXT: "_info"}
_TYPES = {MetricKind.COUNTER: "counter", MetricKind.GAUGE: "gauge", MetricKind.TEXT: "info"}


class PrometheusCollector(Collector):
    """The metrics of applications at each scrape, named as JMX exporters name those of Kafka Streams.

    `process-total` of `stream-thread-metrics` is `kafka_streams_stream_thread_metrics_process_total` there; tags are
    labels. Needs the extra `metrics`.

    Parameters
    ----------
    *applications : MeasuredApplication
        Those of one registry go into one collector: a metric may be described once. Their `client.id`, which is the
        application id where it is not set, tells their values apart.

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
        """Nothing before the first scrape: a registry need not ask a home of topics when it takes the collector."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        families: dict[MetricTemplate, Metric] = {}
        for name, value in measured(self._applications).items():
            template, labels = exported(name)
            if template not in families:
                families[template] = _family(template)
            _add(families[template], template, labels, value)
        yield from families.values()


def _family(template: MetricTemplate) -> Metric:
    plain = exported_name(template.group, template.name).removesuffix(_SUFFIXES[template.kind])
    return Metric(plain, template.description, _TYPES[template.kind])


def _add(family: Metric, template: MetricTemplate, labels: dict[str, str], value: float | str) -> None:
    sample = family.name + _SUFFIXES[template.kind]
    if template.kind is MetricKind.TEXT:
        family.add_sample(sample, {**labels, template.name.replace("-", "_"): str(value)}, 1)
    else:
        family.add_sample(sample, labels, float(value))
