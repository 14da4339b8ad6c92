"""Made-up readings: `python data.py readings | kstreams produce readings --json --value-type float`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

BURSTS = {400: 12.0, 901: -9.0}
"""By number of a reading: what is added to it."""


def readings() -> Iterator[Row]:
    """Yield a reading a second around 50, of two sensors."""
    draw = random.Random(7)
    for number in range(1_200):
        usual = 50 + max(-2.5, min(2.5, draw.gauss(0, 1)))
        yield f"sensor-{number % 2}", round(usual + BURSTS.get(number, 0.0), 3), START_MS + number * 1_000


TOPICS = {"readings": readings}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
