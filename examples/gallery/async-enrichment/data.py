"""Made-up parcels: `python data.py parcels | kstreams produce parcels --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def parcels() -> Iterator[Row]:
    """Yield parcels to three cities."""
    draw = random.Random(11)
    for number in range(200):
        postcode = f"{draw.choice(['10', '20', '80'])}{draw.randrange(1_000):03}"
        yield f"depot-{number % 3}", {"id": number, "postcode": postcode}, START_MS + number * 1_000


TOPICS = {"parcels": parcels}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
