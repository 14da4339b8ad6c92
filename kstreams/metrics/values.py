"""The values of metrics: of both engines the same functions make them from samples."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import TypeAlias

from kstreams.metrics.catalogue import APPLICATION_ID, CLIENT_STATE, VERSION
from kstreams.metrics.samples import Activity, Samples
from kstreams.metrics.template import ActivityMetrics, AvgMax, AvgMinMax, MetricName, RateTotal, Tags

MetricValue: TypeAlias = float | str
MetricValues: TypeAlias = Iterator[tuple[MetricName, MetricValue | None]]
"""Names with values. The value is None while there is nothing to average."""

_DISTRIBUTION = "kstreams-dsl"


def identity(application_id: str, state: str, tags: Tags) -> MetricValues:
    """Return the values that tell which application this is, and its state."""
    yield VERSION.tagged(tags), version(_DISTRIBUTION)
    yield APPLICATION_ID.tagged(tags), application_id
    yield CLIENT_STATE.tagged(tags), state


def latency(metrics: AvgMax, seconds: Samples, tags: Tags, now: float) -> MetricValues:
    """Return the mean and the longest duration, in milliseconds.

    Examples
    --------
    >>> from kstreams.metrics.catalogue import THREAD_POLL
    >>> seconds = Samples(window_s=30, windows=2, now=0)
    >>> seconds.record(0.25, now=1)
    >>> [(metric.name, value) for metric, value in latency(THREAD_POLL.latency, seconds, (), now=2)]
    [('poll-latency-avg', 250.0), ('poll-latency-max', 250.0)]
    """
    yield metrics.avg.tagged(tags), _milliseconds(seconds.average(now))
    yield metrics.max.tagged(tags), _milliseconds(seconds.highest(now))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def durations(metrics: ActivityMetrics, activity: Activity, tags: Tags, now: float) -> MetricValues:
    """Return the duration of an activity, and its share of the time."""
    yield from latency(metrics.latency, activity.seconds, tags, now)
    yield metrics.ratio.tagged(tags), activity.seconds.sum_rate(now)


def rate_and_count(metrics: RateTotal, samples: Samples, tags: Tags, now: float) -> MetricValues:
    """Return how many values there are per second, and since the start."""
    yield metrics.rate.tagged(tags), samples.rate(now)
    yield metrics.total.tagged(tags), samples.count


def rate_and_sum(metrics: RateTotal, samples: Samples, tags: Tags, now: float) -> MetricValues:
    """Return the sum of the values per second, and since the start."""
    yield metrics.rate.tagged(tags), samples.sum_rate(now)
    yield metrics.total.tagged(tags), samples.total


def average_and_maximum(metrics: AvgMax | AvgMinMax, samples: Samples, tags: Tags, now: float) -> MetricValues:
    """Return the mean and the greatest of the recent values."""
    yield metrics.avg.tagged(tags), samples.average(now)
    yield metrics.max.tagged(tags), samples.highest(now)


def average_and_extremes(metrics: AvgMinMax, samples: Samples, tags: Tags, now: float) -> MetricValues:
    """Return the mean, the greatest and the least of the recent values."""
    yield from average_and_maximum(metrics, samples, tags, now)
    yield metrics.min.tagged(tags), samples.lowest(now)
