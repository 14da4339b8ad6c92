"""The metrics of stores, of what they hold in memory, and of RocksDB below them."""

from __future__ import annotations

from time import monotonic

from kstreams.runtime.metrics.catalogue import CACHE, STATE, MetricName
from kstreams.runtime.native.gathered_metrics.found import Found, Tags, extremes, latency
from kstreams.runtime.native.metrics.debug_sensors import DebugSensors
from kstreams.runtime.native.metrics.task_sensors import TaskSensors


def of_stores(sensors: TaskSensors, tags: Tags) -> Found:
    """What RocksDB says of each store; with DEBUG also what operations take, and hit ratios."""
    for store, properties in sensors.properties.items():
        of_store = (*tags, ("rocksdb-state-id", store))
        for name, value in properties.items():
            yield MetricName(STATE, name, of_store), value
        if properties:
            yield MetricName(STATE, "estimate-live-data-size", of_store), sensors.extents[store].bytes
    if sensors.debug is not None:
        yield from _of_operations(sensors.debug, tags)
        yield from _of_memory(sensors.debug, tags)
        for name, figure in sensors.debug.database.values(monotonic()):
            yield MetricName(STATE, name, tags), figure


def _of_operations(debug: DebugSensors, tags: Tags) -> Found:
    now = monotonic()
    for (store, name), seconds in list(debug.operations.by_operation.items()):
        of_store = (*tags, ("state-id", store))
        yield from latency(STATE, name, seconds, of_store, now)
        yield MetricName(STATE, f"{name}-rate", of_store), seconds.rate(now)


def _of_memory(debug: DebugSensors, tags: Tags) -> Found:
    now = monotonic()
    for store, hits in list(debug.hits.by_store.items()):
        of_cache = (*tags, ("record-cache-id", store))
        yield from extremes(CACHE, "hit-ratio", hits, of_cache, now)
        yield MetricName(CACHE, "hit-ratio-min", of_cache), hits.lowest(now)
    for buffer in debug.suppress:
        for extent, samples in buffer.extents.items():
            yield from extremes(
                STATE, f"suppression-buffer-{extent}", samples, (*tags, ("state-id", buffer.store)), now
            )
