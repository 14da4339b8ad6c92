"""Made-up usage: `python data.py disk-usage | kstreams produce disk-usage --json --value-type int`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01


def usage() -> Iterator[Row]:
    """Yield how full the disks of three machines are, in percent: they fill and are cleaned up."""
    draw = random.Random(14)
    percents = [50, 60, 70]
    for minute in range(600):
        for machine in range(3):
            percents[machine] = max(0, min(100, percents[machine] + draw.randint(-6, 6)))
            yield f"machine-{machine}", percents[machine], START_MS + minute * 60_000


TOPICS = {"disk-usage": usage}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
