"""What the flights example must find, computed plainly from the records of its input topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

HOUR_MS = 3_600_000

Rows = list[dict[str, Any]]


def departed(flights: Rows) -> Rows:
    return [row for row in flights if row["value"]["dep_delay"] is not None]


def by_hour(flights: Rows) -> set[tuple[int, str, int, float, int]]:
    groups = grouped(((row["timestamp"] // HOUR_MS * HOUR_MS, row["key"]), row) for row in departed(flights))
    return {(start, origin, len(d), sum(d) / len(d), max(d)) for (start, origin), d in groups.items()}


def by_airline(flights: Rows, airlines: Rows) -> set[tuple[str, int, float]]:
    names = names_of(airlines)
    groups = grouped((names[row["value"]["carrier"]], row) for row in departed(flights))
    return {(airline, len(d), sum(d) / len(d)) for airline, d in groups.items()}


def in_wind(flights: Rows, airlines: Rows, weather: Rows) -> list[tuple[str, int, str, str, int, float]]:
    names, windy = names_of(airlines), defaultdict(list)
    for report in weather:
        if (report["value"]["wind_speed"] or 0) > 20:
            windy[report["key"]].append(report)
    return sorted(
        (v["carrier"], v["flight"], names[v["carrier"]], v["departure"], v["dep_delay"], report["value"]["wind_speed"])
        for row in departed(flights)
        if (v := row["value"])["dep_delay"] > 60
        for report in windy[row["key"]]
        if row["timestamp"] - HOUR_MS <= report["timestamp"] <= row["timestamp"]
    )


def names_of(airlines: Rows) -> dict[str, str]:
    return {row["key"]: row["value"]["name"] for row in airlines}


def grouped(rows: Iterable[tuple[Any, dict[str, Any]]]) -> dict[Any, list[int]]:
    groups: dict[Any, list[int]] = defaultdict(list)
    for key, row in rows:
        groups[key].append(row["value"]["dep_delay"])
    return groups
