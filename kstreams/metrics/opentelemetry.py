"""`observe`: the metrics of an application as instruments of an OpenTelemetry meter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import TypeAlias

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from kstreams.metrics.measured import MeasuredApplication
from kstreams.metrics.names import exported_name, labels_of
from kstreams.runtime.metrics.catalogue import TEMPLATES, MetricKind, MetricName

Measurement: TypeAlias = tuple[MetricName, float | str]

_FRESH_S = 0.5  # one collection asks every instrument


def observe(application: MeasuredApplication, meter: Meter) -> None:
    """Let a meter have an instrument for each metric; texts, such as the state, are attributes of a gauge that is 1.

    Needs the extra `metrics`; an exporter is the caller's choice.

    Parameters
    ----------
    application : MeasuredApplication
    meter : opentelemetry.metrics.Meter

    Examples
    --------
    >>> import kstreams as ks
    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> reader = InMemoryMetricReader()
    >>> streams = ks.KafkaStreams(ks.Topology(), {"application.id": "shop"})
    >>> observe(streams, MeterProvider([reader]).get_meter("kstreams"))
    >>> [found] = reader.get_metrics_data().resource_metrics[0].scope_metrics
    >>> [state] = [each for each in found.metrics if each.name == "kafka_streams_stream_metrics_state"]
    >>> dict(state.data.data_points[0].attributes)
    {'state': 'CREATED'}
    """
    latest = _Latest(application)
    for template in TEMPLATES.values():
        create = (
            meter.create_observable_counter if template.kind is MetricKind.COUNTER else meter.create_observable_gauge
        )
        callbacks = [_callback(latest, template.group, template.name)]
        create(exported_name(template.group, template.name), callbacks, description=template.description)


class _Latest:
    """The metrics of this moment, gathered once for all instruments."""

    def __init__(self, application: MeasuredApplication) -> None:
        self._application, self._until = application, 0.0
        self._found: dict[tuple[str, str], list[Measurement]] = {}

    def of(self, group: str, name: str) -> list[Measurement]:
        if monotonic() > self._until:
            found: dict[tuple[str, str], list[Measurement]] = {}
            for metric, value in self._application.metrics().items():
                found.setdefault((metric.group, metric.name), []).append((metric, value))
            self._found, self._until = found, monotonic() + _FRESH_S
        return self._found.get((group, name), [])


def _callback(latest: _Latest, group: str, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: [_observation(metric, value) for metric, value in latest.of(group, name)]


def _observation(metric: MetricName, value: float | str) -> Observation:
    if isinstance(value, str):
        return Observation(1, {**labels_of(metric), metric.name.replace("-", "_"): value})
    return Observation(value, labels_of(metric))
