"""The metrics of the stores of a task, and of the database that holds them."""

from __future__ import annotations

from time import monotonic

from kstreams.metrics import catalogue
from kstreams.metrics.debug_sensors import DebugSensors
from kstreams.metrics.sensors import TaskSensors
from kstreams.metrics.template import Tags
from kstreams.metrics.values import MetricValues, average_and_extremes, average_and_maximum, latency


def store_metrics(sensors: TaskSensors, tags: Tags) -> MetricValues:
    """Return RocksDB's properties of each store; at DEBUG also operations, hit ratios and RocksDB's statistics."""
    for store, properties in sensors.properties.items():
        store_tags = (*tags, ("rocksdb-state-id", store))
        for name, value in properties.items():
            yield catalogue.ROCKSDB_PROPERTIES[name].tagged(store_tags), value
        if properties:
            yield catalogue.ESTIMATE_LIVE_DATA_SIZE.tagged(store_tags), sensors.extents[store].bytes
    if sensors.debug is not None:
        yield from _operations(sensors.debug, tags)
        yield from _hit_ratios(sensors.debug, tags)
        yield from _suppress_buffers(sensors.debug, tags)
        yield from sensors.debug.database.values(tags, monotonic())


def _operations(debug: DebugSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    for (store, operation), seconds in list(debug.operations.by_operation.items()):
        metrics = catalogue.OPERATIONS[operation]
        store_tags = (*tags, ("state-id", store))
        yield from latency(metrics.latency, seconds, store_tags, now)
        yield metrics.rate.tagged(store_tags), seconds.rate(now)


def _hit_ratios(debug: DebugSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    for store, hits in list(debug.hits.by_store.items()):
        yield from average_and_extremes(catalogue.HIT_RATIO, hits, (*tags, ("record-cache-id", store)), now)


def _suppress_buffers(debug: DebugSensors, tags: Tags) -> MetricValues:
    now = monotonic()
    for buffer in debug.suppress:
        for metrics, samples in buffer.extents.items():
            yield from average_and_maximum(metrics, samples, (*tags, ("state-id", buffer.store)), now)
