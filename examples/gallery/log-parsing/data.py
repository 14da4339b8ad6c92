"""Made-up lines of a log: `python data.py access-log | kstreams produce access-log --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

PATHS = ("/", "/login", "/api/items")


def lines() -> Iterator[Row]:
    """Yield five requests a second for five minutes; one line of a hundred is cut off."""
    draw = random.Random(15)
    for number in range(1_500):
        path = draw.choice(PATHS)
        status = 503 if path == "/api/items" and 600 <= number < 900 else 200
        line = f'10.0.0.{draw.randrange(9)} - "GET {path}?id={number} HTTP/1.1" {status} {draw.randrange(5_000)}'
        yield "web-1", line[:20] if draw.random() < 0.01 else line, START_MS + number * 200


TOPICS = {"access-log": lines}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
