"""Made-up positions: `python data.py areas | kstreams produce areas --json`, the same with `positions`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

AREAS = {"harbour": (53.54, 9.97, 800.0), "airport": (53.63, 10.0, 1_500.0)}


def areas() -> Iterator[Row]:
    """Yield two areas of Hamburg."""
    for name, (latitude, longitude, radius) in AREAS.items():
        yield name, {"latitude": latitude, "longitude": longitude, "radius": radius}, START_MS


def positions() -> Iterator[Row]:
    """Yield the ways of three vehicles from the harbour to the airport and back, with some noise."""
    draw = random.Random(12)
    for second in range(400):
        part = 1 - abs(second - 200) / 200
        for vehicle in range(3):
            latitude = 53.54 + 0.09 * part + draw.gauss(0, 0.0005)
            longitude = 9.97 + 0.03 * part + draw.gauss(0, 0.0005)
            position = {"latitude": latitude, "longitude": longitude}
            yield f"vehicle-{vehicle}", position, START_MS + 1 + second * 1_000


TOPICS = {"areas": areas, "positions": positions}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
