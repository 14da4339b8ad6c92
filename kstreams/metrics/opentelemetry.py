"""`observe`: the metrics of an application as instruments of an OpenTelemetry meter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from kstreams.metrics.catalogue import MetricKind, MetricTemplate
from kstreams.metrics.export import MeasuredApplication, exported, exported_name, exported_templates, measured

_FRESH_S = 0.5  # one collection asks every instrument


def observe(application: MeasuredApplication, meter: Meter) -> None:
    """Let a meter have an instrument for each metric; texts, such as the state, are attributes of a gauge that is 1.

    Needs the extra `metrics`; an exporter is the caller's choice. Several applications may share a meter.

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
    {'client_id': 'shop', 'state': 'CREATED'}
    """
    if meter in _OBSERVED:
        _OBSERVED[meter].applications.append(application)
        return
    latest = _OBSERVED[meter] = _Latest(application)
    for template in exported_templates():
        create = (
            meter.create_observable_counter if template.kind is MetricKind.COUNTER else meter.create_observable_gauge
        )
        callbacks = [_callback(latest, template)]
        create(exported_name(template.group, template.name), callbacks, description=template.description)


class _Latest:
    """The metrics of this moment, gathered once for all instruments."""

    def __init__(self, application: MeasuredApplication) -> None:
        self.applications = [application]
        self._until = 0.0
        self._found: dict[MetricTemplate, list[Observation]] = {}

    def of(self, template: MetricTemplate) -> list[Observation]:
        if monotonic() > self._until:
            self._found = self._gathered()
            self._until = monotonic() + _FRESH_S
        return self._found.get(template, [])

    def _gathered(self) -> dict[MetricTemplate, list[Observation]]:
        observations: dict[MetricTemplate, list[Observation]] = {}
        for name, value in measured(list(self.applications)).items():
            template, labels = exported(name)
            observations.setdefault(template, []).append(_observation(template, labels, value))
        return observations


_OBSERVED: WeakKeyDictionary[Meter, _Latest] = WeakKeyDictionary()
"""A meter takes each instrument once, and drops a second one without an error."""


def _callback(latest: _Latest, template: MetricTemplate) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: latest.of(template)


def _observation(template: MetricTemplate, labels: dict[str, str], value: float | str) -> Observation:
    if isinstance(value, str):
        return Observation(1, {**labels, template.name.replace("-", "_"): value})
    return Observation(value, labels)
