"""Made-up lines: `python data.py lines | kstreams produce lines --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

WORDS = ("to", "be", "or", "not", "that", "is", "the", "question")


def lines() -> Iterator[Row]:
    """Yield lines of three to eight words."""
    draw = random.Random(1)
    for number in range(500):
        yield None, " ".join(draw.choices(WORDS, k=draw.randint(3, 8))), START_MS + number * 1_000


TOPICS = {"lines": lines}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
