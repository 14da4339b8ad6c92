"""`observe`: the metrics of an application as instruments of an OpenTelemetry meter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from kstreams.metrics.catalogue import TEMPLATES, template_of
from kstreams.metrics.export import MeasuredApplication, exported_name, labels_of, measured
from kstreams.metrics.template import MetricKind, MetricTemplate
from kstreams.metrics.values import MetricValue

_MAX_AGE_S = 0.5  # one collection calls every instrument


def observe(application: MeasuredApplication, meter: Meter) -> None:
    """Create an instrument for each metric. Texts, such as the state, are attributes of a gauge whose value is 1.

    Needs the extra `metrics`. The caller chooses the exporter. Several applications may share a meter.

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
    >>> [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
    >>> [state] = [each for each in scope.metrics if each.name == "kafka_streams_stream_metrics_state"]
    >>> dict(state.data.data_points[0].attributes)
    {'client_id': 'shop', 'state': 'CREATED'}
    """
    if meter in _METERS:
        _METERS[meter].applications.append(application)
        return
    latest = _METERS[meter] = _Latest(application)
    for template in TEMPLATES.values():
        create = (
            meter.create_observable_counter if template.kind is MetricKind.COUNTER else meter.create_observable_gauge
        )
        callbacks = [_callback(latest, template)]
        create(exported_name(template), callbacks, description=template.description)


class _Latest:
    """The present metrics of applications, gathered once for all instruments."""

    def __init__(self, application: MeasuredApplication) -> None:
        self.applications = [application]
        self._expires_at = 0.0
        self._observations: dict[MetricTemplate, list[Observation]] = {}

    def of(self, template: MetricTemplate) -> list[Observation]:
        if monotonic() > self._expires_at:
            self._observations = self._gathered()
            self._expires_at = monotonic() + _MAX_AGE_S
        return self._observations.get(template, [])

    def _gathered(self) -> dict[MetricTemplate, list[Observation]]:
        observations: dict[MetricTemplate, list[Observation]] = {}
        for name, value in measured(list(self.applications)).items():
            template = template_of(name)
            observations.setdefault(template, []).append(_observation(template, labels_of(name), value))
        return observations


_METERS: WeakKeyDictionary[Meter, _Latest] = WeakKeyDictionary()
"""Meters with instruments. A meter ignores a second instrument of the same name without an error."""


def _callback(latest: _Latest, template: MetricTemplate) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: latest.of(template)


def _observation(template: MetricTemplate, labels: dict[str, str], value: MetricValue) -> Observation:
    if isinstance(value, str):
        return Observation(1, {**labels, template.name.replace("-", "_"): value})
    return Observation(value, labels)
