"""Made-up purchases: `python data.py purchases | kstreams produce purchases --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def purchases() -> Iterator[Row]:
    """Yield purchases of 50 customers in 8 shops."""
    draw = random.Random(13)
    for number in range(1_000):
        purchase = {"shop": f"shop-{draw.randrange(8)}", "cents": draw.randint(100, 50_000)}
        yield f"customer-{draw.randrange(50)}", purchase, START_MS + number * 1_000


TOPICS = {"purchases": purchases}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
