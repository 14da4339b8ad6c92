"""Made-up games: `python data.py games | kstreams produce games --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def games() -> Iterator[Row]:
    """Yield a game every five minutes for three days."""
    draw = random.Random(8)
    for number in range(3 * 24 * 12):
        player = f"player-{min(draw.randrange(30), draw.randrange(30))}"
        yield player, {"points": draw.randint(1, 100)}, START_MS + number * 300_000


TOPICS = {"games": games}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
