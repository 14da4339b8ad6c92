"""Made-up deliveries: `python data.py deliveries | kstreams produce deliveries --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def deliveries() -> Iterator[Row]:
    """Yield deliveries of four depots; one of five comes two or three times within minutes."""
    draw = random.Random(9)
    rows = []
    for number in range(400):
        delivery = {"id": f"delivery-{number}", "parcels": draw.randint(1, 9)}
        time_ms = START_MS + number * 5_000
        for repeat in range(draw.choice([1, 1, 1, 1, 1, 1, 1, 1, 2, 3])):
            rows.append((f"depot-{number % 4}", delivery, time_ms + repeat * 60_000))
    yield from sorted(rows, key=lambda row: row[2])


TOPICS = {"deliveries": deliveries}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
