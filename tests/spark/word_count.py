"""Words counted: lines, what their topics hold, and the counts of all lines."""

from __future__ import annotations

import kstreams as ks
from tests.spark.running import Row

LINES = [
    Row("lines", "a", "the cat", 1),
    Row("lines", "b", "the dog and the cat", 2),
    Row("lines", "c", "a dog", 3),
    Row("lines", "d", "cat", 4),
]
WORD_TYPES = {"lines": (str, str), "counts": (str, int)}
COUNTS = {"the": 3, "cat": 3, "dog": 2, "and": 1, "a": 1}


def word_count(store: str = "counts", *, more: bool = False) -> ks.StreamsBuilder:
    """Counts of words; `more`: with a step and a store behind them."""
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).flat_map_values(str.split, value=str)
    counts = words.group_by(lambda key, word: word, key=str).count(store)
    counts.to_stream().to("counts")
    if more:
        counts.filter(lambda word, count: count > 1, materialized="repeated")
    return builder
