"""Sensors: the measurements of processors, in addition to the metrics of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """The values of a sensor so far. `last` and `highest` are None before the first value."""

    count: int = 0
    total: float = 0
    last: float | None = None
    highest: float | None = None


class Sensor:
    """Records values one by one. Kafka Streams: `Sensor`.

    Examples
    --------
    >>> sensor = Sensor()
    >>> sensor.record(3), sensor.record(2)
    (None, None)
    >>> sensor.measured
    Measured(count=2, total=5, last=2, highest=3)
    """

    __slots__ = ("_count", "_highest", "_last", "_total")

    def __init__(self) -> None:
        self._count = 0
        self._total: float = 0
        self._last: float | None = None
        self._highest: float | None = None

    def record(self, value: float = 1) -> None:
        """Record a value. Without a value, count an event."""
        self._count += 1
        self._total += value
        self._last = value
        if self._highest is None or value > self._highest:
            self._highest = value

    @property
    def measured(self) -> Measured:
        """The values so far."""
        return Measured(self._count, self._total, self._last, self._highest)


class ProcessorMetrics:
    """The sensors of one operator. Kafka Streams: `StreamsMetrics`."""

    __slots__ = ("_node", "_sensors")

    def __init__(self, node: str, sensors: dict[tuple[str, str], Sensor]) -> None:
        self._node = node
        self._sensors = sensors

    def add_sensor(self, name: str) -> Sensor:
        """Return the sensor of this name. The first call creates it."""
        return self._sensors.setdefault((self._node, name), Sensor())


def merged(tasks: Iterable[Mapping[tuple[str, str], Sensor]]) -> dict[tuple[str, str], Measured]:
    """Return the values of the sensors of several tasks together, by (operator, sensor)."""
    totals: dict[tuple[str, str], Measured] = {}
    for sensors in tasks:
        for name, sensor in dict(sensors).items():  # stream threads may add sensors meanwhile
            totals[name] = _sum(totals.get(name, Measured()), sensor.measured)
    return totals


def _sum(first: Measured, other: Measured) -> Measured:
    highest = max((measured.highest for measured in (first, other) if measured.highest is not None), default=None)
    last = first.last if other.last is None else other.last
    return Measured(first.count + other.count, first.total + other.total, last, highest)
