"""What the patterns and the classics must put out: each computed plainly, in a few lines, from the same sample data."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from statistics import fmean
from typing import Any

from tests.examples.conftest import EXAMPLES

Row = dict[str, Any]
Expected = dict[str, Any]
DAY_MS = 86_400_000
GRACE_MS = 600_000


@cache
def sample(topic: str) -> list[Row]:
    return [json.loads(line) for line in (EXAMPLES / "data" / f"{topic}.jsonl").read_text().splitlines()]


def by_windows(rows: list[Row], size_ms: int, advance_ms: int) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        last = row["timestamp"] // advance_ms * advance_ms
        for start in range(last, row["timestamp"] - size_ms, -advance_ms):
            found[f"{row['key']}@{start}"].append(row)
    return found


def prices(rows: list[Row]) -> Row:
    found = [row["value"]["price"] for row in rows]
    return {"trades": len(found), "lowest": min(found), "mean": fmean(found)}


def log_routing() -> Expected:
    lines = [row["value"] for row in sample("log-lines")]
    kept = [line for line in lines if line["level"] not in ("ERROR", "DEBUG")]
    return {
        "errors": Counter(map(text, (line for line in lines if line["level"] == "ERROR"))),
        "messages": Counter(f"{line['level']} {line['message']}" for line in kept),
    }


def price_range() -> Expected:
    return {"price-ranges": {key: prices(rows) for key, rows in by_windows(sample("trades"), DAY_MS, DAY_MS).items()}}


def top_stocks() -> Expected:
    days: dict[str, list[Row]] = defaultdict(list)
    for window, rows in by_windows(sample("trades"), DAY_MS, DAY_MS).items():
        share, _, start = window.partition("@")
        first, last = rows[0]["value"]["price"], rows[-1]["value"]["price"]
        days[start].append({"share": share, "percent": round(100 * (last - first) / first, 2)})
    return {
        "top-stocks": {
            start: sorted(gains, key=lambda g: (-g["percent"], g["share"]))[:10] for start, gains in days.items()
        }
    }


def profile_of(click: Row) -> Row:
    known = [p for p in sample("profiles") if p["key"] == click["key"] and p["timestamp"] <= click["timestamp"]]
    return known[-1]["value"] if known else {"name": None, "city": None}


def click_profile() -> Expected:
    found = ({"page": c["value"]["page"], **profile_of(c)} for c in sample("clicks"))
    return {"profiled-clicks": Counter(text({k: v or "?" for k, v in row.items()}) for row in found)}


def pairs(before_ms: int, after_ms: int) -> Iterator[tuple[Row, Row]]:
    """Searches and clicks of one user, the click in [search - before, search + after]."""
    for search in sample("searches"):
        for click in sample("clicks"):
            gap = click["timestamp"] - search["timestamp"]
            if search["key"] == click["key"] and -before_ms <= gap <= after_ms:
                yield search, click


def search_clicks() -> Expected:
    led = [(s["timestamp"], s["value"]["words"], c["value"]["page"]) for s, c in pairs(0, 5_000)]
    found = {(time, words) for time, words, _ in led}
    alone = [s for s in sample("searches") if (s["timestamp"], s["value"]["words"]) not in found]
    rows = [{"words": words, "page": page} for _, words, page in led]
    rows += [{"words": s["value"]["words"], "page": None} for s in alone]
    return {"search-outcomes": Counter(map(text, rows))}


def out_of_order() -> Expected:
    """In the order of arrival, with the stream time of the partition that holds the device's key."""
    found: dict[str, list[float]] = defaultdict(list)
    stream_time = -1
    for row in sample("readings"):
        measured = round(datetime.fromisoformat(row["value"]["measured"]).timestamp() * 1000)
        stream_time = max(stream_time, measured)
        start = measured // 60_000 * 60_000
        if start + 60_000 > stream_time - GRACE_MS:
            found[f"{row['key']}@{start}"].append(row["value"]["celsius"])
    return {"minutes": {key: {"readings": len(v), "warmest": max(v)} for key, v in found.items()}}


def visits(topic: str, spelling: Callable[[str], str]) -> Expected:
    return {topic: dict(Counter(spelling(row["value"]) for row in sample("visits")))}


def stock_statistics() -> Expected:
    return {"stock-statistics": {key: prices(rows) for key, rows in by_windows(sample("trades"), 5_000, 1_000).items()}}


def click_enrichment() -> Expected:
    words: dict[int, list[str]] = defaultdict(list)
    for search, click in pairs(0, 1_000):
        words[click["timestamp"]].append(search["value"]["words"])
    rows = [
        {"page": c["value"]["page"], **profile_of(c), "words": found}
        for c in sample("clicks")
        for found in words.get(c["timestamp"], [None])
    ]
    return {"activities": Counter(map(text, rows))}


def text(row: Row) -> str:
    return json.dumps(row, sort_keys=True)
