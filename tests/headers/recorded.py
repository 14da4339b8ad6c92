"""What Kafka Streams 4.4 gave for the cases: their input, and the rows that came out with their headers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

Row = list[Any]
"""A record as it is recorded: key, value, timestamp, headers."""

INPUT: list[tuple[str, str, str | None, int, str | None]] = [
    ("a", "k1", "v1", 0, "a0"),
    ("b", "k1", "w1", 1_000, "b0"),
    ("a", "k1", "v2", 2_000, "a1"),
    ("b", "k2", "w2", 3_000, None),
    ("a", "k2", "v3", 4_000, "a2"),
    ("a", "k1", "v5", 1_500, "a3"),
    ("b", "k1", "w3", 4_500, "b1"),
    ("a", "k1", None, 5_000, "a4"),
    ("b", "k1", None, 6_000, "b2"),
    ("a", "k3", "v4", 50_000, "a5"),
    ("b", "k3", "w4", 51_000, "b3"),
    ("a", "k1", "v6", 120_000, None),
    ("b", "k9", "w9", 200_000, "b4"),
    ("a", "k9", "v9", 201_000, "a6"),
]
"""Topic, key, value, time, and the value of the header "h"; as `INPUT` of `HeaderCases.java`."""


class Recorded(NamedTuple):
    """One run of one case: with which `dsl.store.format`, and how large a record cache."""

    case: str
    format: str
    cache: int


def headers_of(value: str | None) -> list[tuple[str, bytes]]:
    """The headers of an input record."""
    return [] if value is None else [("h", value.encode())]


def recorded(column: str) -> dict[Recorded, list[Row]]:
    """Of all runs that have it: what came out, or what a changelog holds."""
    lines = (Path(__file__).parent / "cases.jsonl").read_text().splitlines()
    runs = {Recorded(row["case"], row["format"], row["cache"]): row for row in map(json.loads, lines)}
    return {run: row[column] for run, row in runs.items() if column in row}


RUNS = recorded("rows")
CHANGELOGS = recorded("changelog")
"""Of the store of the case, without deletions; keys in hexadecimal digits."""
