"""Made-up readings: `python data.py readings | kstreams produce readings --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def readings() -> Iterator[Row]:
    """Yield readings in the order of arrival: most come within 20 seconds, one of fifty after five minutes."""
    draw = random.Random(4)
    rows = []
    for number in range(1_000):
        time_ms = START_MS + number * 1_000
        delay_ms = 300_000 if draw.random() < 0.02 else draw.randrange(20_000)
        reading = {"celsius": round(20 + draw.gauss(0, 2), 2)}
        rows.append((time_ms + delay_ms, (f"sensor-{draw.randrange(3)}", reading, time_ms)))
    yield from (row for _, row in sorted(rows, key=lambda pair: pair[0]))


TOPICS = {"readings": readings}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
