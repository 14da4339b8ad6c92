"""The word count of the README: lines to words, a repartition by word, a table of counts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

LINES, WORDS_PER_LINE, VOCABULARY = 200_000, 8, 10_000


def run() -> dict[str, float]:
    """Lines of eight words a second."""
    random = np.random.default_rng(7)
    ranks = np.minimum(random.zipf(1.3, (LINES, WORDS_PER_LINE)), VOCABULARY)
    lines = [" ".join(f"word{rank}" for rank in line) for line in ranks.tolist()]
    figures = {"plain loop": baseline.rate(LINES, lambda: baseline.word_count(lines))}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        job.write(log, "in", pa.nulls(LINES, pa.binary()), pa.array(lines).cast(pa.binary()), np.arange(LINES))
        figures["lines to counts, through a repartition topic"] = job.rate(_word_count(), log, LINES)
    return figures


def _word_count() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str).flat_map_values(lambda line: line.lower().split(), value=str)
    words.group_by(lambda key, word: word, key=str).count().to_stream().to("out", key=str, value=int)
    return builder.build()
