"""Made-up events of Debezium, of one topic: `python data.py TOPIC | kstreams produce TOPIC --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

CITIES = ("Berlin", "Lyon", "Porto")


def events() -> Iterator[Row]:
    """Yield inserts, moves to another city, and deletes with their tombstones."""
    draw = random.Random(10)
    rows: dict[int, dict[str, Any]] = {}
    for lsn in range(600):
        time_ms = START_MS + lsn * 1_000
        identity = draw.randrange(80)
        before = rows.pop(identity, None)
        if before is not None and draw.random() < 0.3:
            yield {"id": identity}, event("d", before, None, lsn), time_ms
            yield {"id": identity}, None, time_ms
        else:
            rows[identity] = {"id": identity, "name": f"customer {identity}", "city": draw.choice(CITIES)}
            yield {"id": identity}, event("c" if before is None else "u", before, rows[identity], lsn), time_ms


def event(operation: str, before: Any, after: Any, lsn: int) -> dict[str, Any]:
    """Return an event as Debezium's connector for PostgreSQL writes it."""
    return {"before": before, "after": after, "source": {"lsn": lsn}, "op": operation}


TOPICS = {"shop.public.customers": events}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
