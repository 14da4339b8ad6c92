"""Sensors: what processors measure themselves, beside what the engine counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Measured(NamedTuple):
    """What a sensor has seen so far; `last` and `highest` are None before the first value."""

    count: int = 0
    total: float = 0
    last: float | None = None
    highest: float | None = None


class Sensor:
    """Takes values one by one. Kafka Streams: `Sensor`.

    Examples
    --------
    >>> sensor = Sensor()
    >>> sensor.record(3), sensor.record(2)
    (None, None)
    >>> sensor.measured
    Measured(count=2, total=5, last=2, highest=3)
    """

    __slots__ = ("measured",)

    def __init__(self) -> None:
        self.measured = Measured()

    def record(self, value: float = 1) -> None:
        """Take a value; without one, something is counted."""
        count, total, _, highest = self.measured
        self.measured = Measured(count + 1, total + value, value, value if highest is None else max(highest, value))


class ProcessorMetrics:
    """The sensors of one operator. Kafka Streams: `StreamsMetrics`."""

    __slots__ = ("_node", "_sensors")

    def __init__(self, node: str, sensors: dict[tuple[str, str], Sensor]) -> None:
        self._node, self._sensors = node, sensors

    def add_sensor(self, name: str) -> Sensor:
        """The sensor of this name, made when it is asked for first."""
        return self._sensors.setdefault((self._node, name), Sensor())


def merged(tasks: Iterable[Mapping[tuple[str, str], Sensor]]) -> dict[tuple[str, str], Measured]:
    """What the sensors of several tasks have seen together, by (operator, sensor)."""
    found: dict[tuple[str, str], Measured] = {}
    for sensors in tasks:
        for name, sensor in sensors.items():
            found[name] = _sum(found.get(name, Measured()), sensor.measured)
    return found


def _sum(one: Measured, other: Measured) -> Measured:
    highest = max((seen.highest for seen in (one, other) if seen.highest is not None), default=None)
    last = one.last if other.last is None else other.last
    return Measured(one.count + other.count, one.total + other.total, last, highest)
