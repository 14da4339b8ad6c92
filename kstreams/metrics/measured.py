"""`MeasuredApplication`: whose metrics can be read: an application that runs natively, or on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kstreams.runtime.metrics.catalogue import MetricName


class MeasuredApplication(Protocol):
    """A `KafkaStreams`, or the handle of a run on Spark (`ks.spark.start`)."""

    def metrics(self) -> Mapping[MetricName, float | str]:
        """The values of all metrics now."""
        ...
