"""Made-up events: `python data.py events | kstreams produce events --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def events() -> Iterator[Row]:
    """Yield views of products. One of three leads to a basket, and one of those to a purchase, sometimes too late."""
    draw = random.Random(6)
    rows = []
    for visitor in range(400):
        product = f"product-{draw.randrange(4)}"
        time_ms = START_MS + visitor * 20_000
        for step in ("view", "basket", "purchase"):
            rows.append((f"visitor-{visitor}", {"step": step, "product": product}, time_ms))
            if draw.random() < 0.66:
                break
            time_ms += 5_000_000 if draw.random() < 0.1 else draw.randrange(1, 3_000_000)
    yield from sorted(rows, key=lambda row: row[2])


TOPICS = {"events": events}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
