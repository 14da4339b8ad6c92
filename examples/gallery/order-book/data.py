"""Made-up orders: `python data.py orders | kstreams produce orders --json --key-type int`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

SHARES = ("ABC", "XYZ")


def orders() -> Iterator[Row]:
    """Yield orders; one of three is changed or cancelled (null) later."""
    draw = random.Random(5)
    placed: list[tuple[int, dict[str, Any]]] = []
    for number in range(600):
        time_ms = START_MS + number * 100
        if placed and draw.random() < 0.33:
            earlier, order = placed.pop(draw.randrange(len(placed)))
            is_cancelled = draw.random() < 0.7
            yield earlier, None if is_cancelled else {**order, "quantity": order["quantity"] + 10}, time_ms
        else:
            is_bid = draw.random() < 0.5
            price = 10_000 + draw.randint(1, 300) * (-1 if is_bid else 1)
            order = {"share": draw.choice(SHARES), "is_bid": is_bid, "price": price, "quantity": draw.randint(1, 50)}
            placed.append((number, order))
            yield number, order, time_ms


TOPICS = {"orders": orders}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
