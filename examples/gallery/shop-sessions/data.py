"""Made-up clicks: `python data.py clicks | kstreams produce clicks --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

PAGES = ("home", "search", "product", "basket", "checkout")


def clicks() -> Iterator[Row]:
    """Yield the clicks of 20 visitors, who take pauses of seconds, or of an hour."""
    draw = random.Random(3)
    rows = []
    for visitor in range(20):
        time_ms = START_MS + draw.randrange(3_600_000)
        for _ in range(60):
            page = draw.choice(PAGES)
            cents = draw.randint(500, 9_000) if page == "checkout" else 0
            rows.append((f"visitor-{visitor}", {"page": page, "cents": cents}, time_ms))
            time_ms += draw.randint(1_000, 90_000) if draw.random() < 0.9 else 3_600_000
    yield from sorted(rows, key=lambda row: row[2])


TOPICS = {"clicks": clicks}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
