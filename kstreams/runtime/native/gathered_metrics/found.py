"""What each part of an application gives to its metrics: names, with values if there are some by now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kstreams.metrics.catalogue import MetricName
from kstreams.metrics.samples import Activity, Samples

Value: TypeAlias = float | str
Tags: TypeAlias = tuple[tuple[str, str], ...]
Found: TypeAlias = Iterator[tuple[MetricName, Value | None]]


def latency(group: str, name: str, seconds: Samples, tags: Tags, now: float) -> Found:
    """The mean and the longest time of something, in milliseconds."""
    yield MetricName(group, f"{name}-latency-avg", tags), _milliseconds(seconds.average(now))
    yield MetricName(group, f"{name}-latency-max", tags), _milliseconds(seconds.highest(now))


def turns(group: str, name: str, activity: Activity, tags: Tags, now: float) -> Found:
    """How long turns took, and how many there were."""
    yield from latency(group, name, activity.seconds, tags, now)
    yield from occurrences(group, name, activity.seconds, tags, now)


def occurrences(group: str, name: str, samples: Samples, tags: Tags, now: float) -> Found:
    """How many values there were."""
    yield MetricName(group, f"{name}-rate", tags), samples.rate(now)
    yield MetricName(group, f"{name}-total", tags), samples.count


def amounts(group: str, name: str, samples: Samples, tags: Tags, now: float) -> Found:
    """The sum of the values."""
    yield MetricName(group, f"{name}-rate", tags), samples.sum_rate(now)
    yield MetricName(group, f"{name}-total", tags), samples.total


def extremes(group: str, name: str, samples: Samples, tags: Tags, now: float) -> Found:
    """The mean and the greatest of the values."""
    yield MetricName(group, f"{name}-avg", tags), samples.average(now)
    yield MetricName(group, f"{name}-max", tags), samples.highest(now)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
