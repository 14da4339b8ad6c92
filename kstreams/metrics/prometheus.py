"""`PrometheusCollector`: the metrics of an application for prometheus-client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from kstreams.metrics.measured import MeasuredApplication
from kstreams.metrics.names import exported_name, labels_of
from kstreams.runtime.metrics.catalogue import TEMPLATES, MetricKind, MetricName

Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily


class PrometheusCollector(Collector):
    """The metrics of an application at each scrape, named as JMX exporters name those of Kafka Streams.

    `process-total` of `stream-thread-metrics` is `kafka_streams_stream_thread_metrics_process_total` there; tags are
    labels. Needs the extra `metrics`.

    Parameters
    ----------
    application : MeasuredApplication

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry, generate_latest
    >>> import kstreams as ks
    >>> registry = CollectorRegistry()
    >>> registry.register(PrometheusCollector(ks.KafkaStreams(ks.Topology(), {"application.id": "shop"})))
    >>> [line] = [line for line in generate_latest(registry).decode().splitlines() if "_state_info{" in line]
    >>> line
    'kafka_streams_stream_metrics_state_info{state="CREATED"} 1.0'
    """

    def __init__(self, application: MeasuredApplication) -> None:
        self._application = application

    def describe(self) -> Iterable[Family]:
        """Nothing before the first scrape: a registry need not ask a home of topics when it takes the collector."""
        return []

    def collect(self) -> Iterator[Family]:
        """The metrics as they are now."""
        families: dict[tuple[str, str], Family] = {}
        for name, value in self._application.metrics().items():
            key = name.group, name.name
            if key not in families:
                families[key] = _family(name)
            _add(families[key], name, value)
        yield from families.values()


def _family(name: MetricName) -> Family:
    template = TEMPLATES.get((name.group, name.name))
    kind, said = (template.kind, template.description) if template else (MetricKind.GAUGE, "A sensor of a processor.")
    full, labels = exported_name(name.group, name.name), list(labels_of(name))
    if kind is MetricKind.TEXT:
        return InfoMetricFamily(full, said, labels=labels)
    return (CounterMetricFamily if kind is MetricKind.COUNTER else GaugeMetricFamily)(full, said, labels=labels)


def _add(family: Family, name: MetricName, value: float | str) -> None:
    labels = list(labels_of(name).values())
    if isinstance(family, InfoMetricFamily):
        family.add_metric(labels, {name.name.replace("-", "_"): str(value)})
    else:
        family.add_metric(labels, float(value))
