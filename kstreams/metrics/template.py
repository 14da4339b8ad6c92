"""`MetricTemplate`: the declaration of a metric; `MetricScope` declares the metrics of a group with the same labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

Tags: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of the labels of one value."""


class MetricKind(Enum):
    """How the values of a metric change."""

    COUNTER = "counter"  # only grows, from the start of the process
    GAUGE = "gauge"
    TEXT = "text"


class RecordingLevel(Enum):
    """The `metrics.recording.level` that a metric needs. Kafka: `Sensor.RecordingLevel`."""

    INFO = "INFO"
    DEBUG = "DEBUG"


class Unit(Enum):
    """The unit of the values of a metric."""

    NUMBER = "number"
    PER_SECOND = "1/s"
    RATIO = "ratio"  # from 0 to 1
    BYTES = "bytes"
    NANOSECONDS = "ns"
    MILLISECONDS = "ms"
    TIMESTAMP = "ms since 1970"
    TEXT = "text"


class MetricName(NamedTuple):
    """The identity of a value. Kafka: `MetricName`.

    Parameters
    ----------
    group, name : str
    tags : tuple of (str, str)
        The values of the metric's labels.

    Examples
    --------
    >>> MetricName("stream-thread-metrics", "process-total", (("thread-id", "app-StreamThread-1"),)).tag("thread-id")
    'app-StreamThread-1'
    """

    group: str
    name: str
    tags: Tags = ()

    def tag(self, name: str) -> str | None:
        """Return the value of a tag, or None if there is no such tag."""
        return dict(self.tags).get(name)


class MetricTemplate(NamedTuple):
    """A metric that has one value for each combination of labels. Kafka: `MetricNameTemplate`.

    Parameters
    ----------
    group, name : str
    kind : MetricKind
    unit : Unit
    labels : tuple of str
        The names of the tags on the native engine. On Spark, some are absent.
    description : str
    level : RecordingLevel
    ours : bool
        True if Kafka Streams has no such metric.
    """

    group: str
    name: str
    kind: MetricKind
    unit: Unit
    labels: tuple[str, ...]
    description: str
    level: RecordingLevel
    ours: bool

    def tagged(self, tags: Tags) -> MetricName:
        """Return the identity of the value with these labels."""
        return MetricName(self.group, self.name, tags)


class AvgMax(NamedTuple):
    """The mean and the maximum of recent values."""

    avg: MetricTemplate
    max: MetricTemplate


class AvgMinMax(NamedTuple):
    """The mean, the minimum and the maximum of recent values."""

    avg: MetricTemplate
    min: MetricTemplate
    max: MetricTemplate


class RateTotal(NamedTuple):
    """The recent rate per second, and the total since the start."""

    rate: MetricTemplate
    total: MetricTemplate


class ActivityMetrics(NamedTuple):
    """An action that a thread repeats: its duration, its number, and its share of the thread's time."""

    latency: AvgMax
    events: RateTotal
    ratio: MetricTemplate


class OperationMetrics(NamedTuple):
    """An operation of stores: its duration, and its rate per second."""

    latency: AvgMax
    rate: MetricTemplate


@dataclass(frozen=True)
class MetricScope:
    """Declares metrics that have the same group, labels and level.

    Parameters
    ----------
    templates : dict of (str, str) to MetricTemplate
        The list of metrics, by group and name. Every declaration adds to it.
    group : str
    labels : tuple of str
    level : RecordingLevel

    Examples
    --------
    >>> templates = {}
    >>> polls = MetricScope(templates, "stream-thread-metrics", ("thread-id",)).rate_total("poll", "Polls")
    >>> polls.rate.description
    'Polls, per second.'
    >>> list(templates)
    [('stream-thread-metrics', 'poll-rate'), ('stream-thread-metrics', 'poll-total')]
    """

    templates: dict[tuple[str, str], MetricTemplate]
    group: str
    labels: tuple[str, ...]
    level: RecordingLevel = RecordingLevel.INFO

    def debug(self) -> MetricScope:
        """Return the scope of the level DEBUG."""
        return replace(self, level=RecordingLevel.DEBUG)

    def by(self, *labels: str) -> MetricScope:
        """Return a scope with further labels."""
        return replace(self, labels=(*self.labels, *labels))

    def counter(self, name: str, description: str, unit: Unit = Unit.NUMBER, *, ours: bool = False) -> MetricTemplate:
        """Declare a metric that only grows."""
        return self._declare(name, MetricKind.COUNTER, unit, description, ours=ours)

    def gauge(self, name: str, description: str, unit: Unit = Unit.NUMBER, *, ours: bool = False) -> MetricTemplate:
        """Declare a metric that may rise and fall."""
        return self._declare(name, MetricKind.GAUGE, unit, description, ours=ours)

    def text(self, name: str, description: str) -> MetricTemplate:
        """Declare a metric whose values are texts."""
        return self._declare(name, MetricKind.TEXT, Unit.TEXT, description, ours=False)

    def avg_max(self, name: str, values: str, unit: Unit = Unit.NUMBER) -> AvgMax:
        """Declare the mean and the maximum of values."""
        return AvgMax(
            self.gauge(f"{name}-avg", f"{values}: the mean.", unit),
            self.gauge(f"{name}-max", f"{values}: the maximum.", unit),
        )

    def latency(self, name: str, action: str) -> AvgMax:
        """Declare the mean and the longest duration of an action."""
        return AvgMax(
            self.gauge(f"{name}-latency-avg", f"Mean duration of {action}, in milliseconds.", Unit.MILLISECONDS),
            self.gauge(f"{name}-latency-max", f"Longest duration of {action}, in milliseconds.", Unit.MILLISECONDS),
        )

    def rate(self, name: str, events: str) -> MetricTemplate:
        """Declare the rate of events per second."""
        return self.gauge(f"{name}-rate", f"{events}, per second.", Unit.PER_SECOND)

    def rate_total(self, name: str, events: str, unit: Unit = Unit.NUMBER) -> RateTotal:
        """Declare the rate and the total of events."""
        return RateTotal(self.rate(name, events), self.counter(f"{name}-total", f"{events}, since the start.", unit))

    def activity(self, name: str, action: str, events: str) -> ActivityMetrics:
        """Declare the metrics of an action that a thread repeats."""
        return ActivityMetrics(
            self.latency(name, action),
            self.rate_total(name, events),
            self.gauge(f"{name}-ratio", f"Share of the thread's time that {action} takes.", Unit.RATIO),
        )

    def operation(self, name: str, events: str) -> OperationMetrics:
        """Declare the metrics of an operation of stores."""
        action = f"`{name}` of a store, with a scan measured to its end"
        return OperationMetrics(self.latency(name, action), self.rate(name, events))

    def _declare(self, name: str, kind: MetricKind, unit: Unit, description: str, *, ours: bool) -> MetricTemplate:
        template = MetricTemplate(self.group, name, kind, unit, self.labels, description, self.level, ours)
        if (self.group, name) in self.templates:
            raise ValueError(f"the metric {name} of {self.group} is declared twice")
        self.templates[self.group, name] = template
        return template
