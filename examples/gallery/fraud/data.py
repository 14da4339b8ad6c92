"""Made-up payments: `python data.py payments | kstreams produce payments --json`."""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Row = tuple[Any, Any, int]
"""Key, value, and time in milliseconds."""
START_MS = 1_767_225_600_000  # 2026-01-01

STOLEN = {"card-7": ("DE", "BR", "JP"), "card-13": ("FR", "US", "AU")}


def payments() -> Iterator[Row]:
    """Yield payments at home, one each two seconds; two cards pay around the world in the middle."""
    draw = random.Random(2)
    for number in range(900):
        time_ms = START_MS + number * 2_000
        card = f"card-{draw.randrange(20)}"
        country = ("DE", "FR", "IT", "ES")[int(card[5:]) % 4]
        yield card, {"card": card, "country": country, "cents": draw.randint(100, 20_000)}, time_ms
        for stolen, countries in STOLEN.items():
            if 450 <= number < 453:
                abroad = countries[number - 450]
                yield stolen, {"card": stolen, "country": abroad, "cents": 90_000}, time_ms


TOPICS = {"payments": payments}


if __name__ == "__main__":
    for key, value, time_ms in TOPICS[sys.argv[1]]():
        print(json.dumps({"key": key, "value": value, "timestamp": time_ms}))
