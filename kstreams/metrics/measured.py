"""`MeasuredApplication`: whose metrics can be read: an application that runs natively, or on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kstreams.runtime.metrics.catalogue import MetricName


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
