"""The results of a run, and how those of two runs differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tests.spark.draws.topology import Comparable

Record = tuple[str | None, str, int]
"""Key, value as text and timestamp."""

Results = dict[str, list[list[Record]]]
"""By topic: the records of every partition."""


def record(key: str | None, value: Any, timestamp: int) -> Record:
    """A record whose value can be compared and counted."""
    return key, json.dumps(value, sort_keys=True), timestamp


def differences(what: Comparable, expected: Results, found: Results) -> list[str]:
    """What differs, in a few words for each topic; nothing when both results say the same."""
    return [
        *(said for topic in sorted(what.records) for said in _records(topic, expected, found)),
        *(said for topic in sorted(what.changelogs) for said in _changelogs(topic, expected, found)),
        *(said for topic in sorted(what.tables) for said in _tables(topic, expected, found)),
    ]


def _records(topic: str, expected: Results, found: Results) -> Iterator[str]:
    mine, theirs = (Counter(_placed(results.get(topic, []))) for results in (found, expected))
    missing, extra = theirs - mine, mine - theirs
    if missing or extra:
        yield f"{topic}: {missing.total()} of {theirs.total()} missing, {extra.total()} extra"


def _changelogs(topic: str, expected: Results, found: Results) -> Iterator[str]:
    mine, theirs = (_by_key(results.get(topic, [])) for results in (found, expected))
    keys = [key for key in theirs if mine.get(key) != theirs[key] and Counter(mine.get(key)) == Counter(theirs[key])]
    if keys:
        yield f"{topic}: {len(keys)} of {len(theirs)} keys have the same records in another order"


def _tables(topic: str, expected: Results, found: Results) -> Iterator[str]:
    mine, theirs = (_last(results.get(topic, [])) for results in (found, expected))
    keys = [key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)]
    if keys:
        yield f"{topic}: {len(keys)} of {len(theirs)} final rows differ"


def _placed(partitions: list[list[Record]]) -> Iterable[tuple[int, Record]]:
    return ((number, row) for number, rows in enumerate(partitions) for row in rows)


def _by_key(partitions: list[list[Record]]) -> dict[str, list[Record]]:
    """The records of every key in their order; those without a key come from any task."""
    grouped: dict[str, list[Record]] = {}
    for _, row in _placed(partitions):
        if row[0] is not None:
            grouped.setdefault(row[0], []).append(row)
    return grouped


def _last(partitions: list[list[Record]]) -> dict[str, str]:
    """The last value of every key, without those that were deleted."""
    last = {key: rows[-1][1] for key, rows in _by_key(partitions).items()}
    return {key: value for key, value in last.items() if value != "null"}
