"""Five topologies over a million records each, natively and on Spark in steps of tens of thousands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from kstreams.log import open_log
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.serdes import serde_of
from tests.spark.draws.large_results import Kind, changelog, difference, rows_of, table
from tests.spark.running import Application

ROWS, PARTITIONS, AT_ONCE = 1_000_000, 4, 50_000
HOUR_MS, JITTER_MS = 3_600_000, 600

Columns = tuple[pa.Array, pa.Array, np.ndarray[Any, Any]]
"""Keys, values and timestamps of the records of a topic."""


@dataclass(frozen=True)
class Large:
    """A topology, its input and its results.

    Parameters
    ----------
    build : callable
        Adds the topology to a builder.
    rows : callable
        The input by topic, in order of offsets, out of a generator of random numbers and a number of records.
    results : mapping of str to Kind
        Its topics and what is compared of each.
    """

    build: Callable[[ks.StreamsBuilder], None]
    rows: Callable[[np.random.Generator, int], dict[str, Columns]]
    results: Mapping[str, Kind]


# --- topologies ------------------------------------------------------------------------------------------------------


def named(key: Any, value: Any) -> str:
    """A windowed key as text."""
    return f"{key.key}@{key.window.start_ms}/{key.window.end_ms}"


def rekeyed_windows(builder: ks.StreamsBuilder) -> None:
    """Windows of ten seconds behind a repartition topic."""
    events = builder.stream("events", key=str, value=str).group_by(lambda key, value: value, key=str)
    counts = events.windowed_by(ks.TimeWindows(size=10_000, grace=300)).count()
    counts.to_stream(named, key=str).to("counts", key=str, value=int)


def inner_join(builder: ks.StreamsBuilder) -> None:
    """Two topics, the second of which begins where half of the first is over."""
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("left", "right"))
    joined = left.join(right, lambda one, other: f"{one}+{other}", windows=ks.JoinWindows.of(5_000, grace=1_000))
    joined.to("joined", key=str, value=str)


def sessions(builder: ks.StreamsBuilder) -> None:
    """Sessions of each key."""
    events = builder.stream("events", key=str, value=str).group_by_key()
    counts = events.windowed_by(ks.SessionWindows(gap=4_000, grace=300)).count()
    counts.to_stream(named, key=str).to("sessions", key=str, value=int)


def foreign_key_join(builder: ks.StreamsBuilder) -> None:
    """Two tables, rows of which come, move and go."""
    left, right = (builder.table(topic, key=str, value=str) for topic in ("orders", "shops"))
    joined = left.join(right, lambda one, other: f"{one}+{other}", foreign_key=lambda order: order, value=str)
    joined.to_stream().to("joined", key=str, value=str)


def hopping_words(builder: ks.StreamsBuilder) -> None:
    """Words, counted in windows that overlap."""
    words = builder.stream("lines", key=str, value=str).flat_map_values(str.split, value=str)
    by_word = words.group_by(lambda key, word: word, key=str)
    counts = by_word.windowed_by(ks.TimeWindows(size=30_000, advance=15_000, grace=300)).count()
    counts.to_stream(named, key=str).to("words", key=str, value=int)


# --- input -----------------------------------------------------------------------------------------------------------


def events(random: np.random.Generator, count: int) -> dict[str, Columns]:
    """Jittered events; one partition is an hour ahead."""
    keys, values = texts(random, "k", 10_000, count), texts(random, "v", 1_000, count)
    return {"events": (keys, values, skewed(keys, jittered(random, 10_000_000, 2_000_000, count)))}


def spans(random: np.random.Generator, count: int) -> dict[str, Columns]:
    """Two topics of different spans."""
    found = {}
    for topic, start, rows in (("left", 10_000_000, count * 3 // 5), ("right", 11_500_000, count * 2 // 5)):
        times = jittered(random, start, 3_000_000, rows)
        found[topic] = texts(random, "k", 5_000, rows), texts(random, topic, 1_000_000, rows), times
    return found


def changes(random: np.random.Generator, count: int) -> dict[str, Columns]:
    """Orders that move from shop to shop, and shops that come and go."""
    orders, shops = count * 4 // 5, count // 5
    times = jittered(random, 10_000_000, 2_000_000, orders), jittered(random, 10_000_000, 2_000_000, shops)
    return {
        "orders": (texts(random, "o", 100_000, orders), gone(random, texts(random, "s", 20_000, orders)), times[0]),
        "shops": (texts(random, "s", 20_000, shops), gone(random, texts(random, "name", 1_000, shops)), times[1]),
    }


def lines(random: np.random.Generator, count: int) -> dict[str, Columns]:
    """Lines of one or two words; one partition is an hour ahead."""
    keys, first, second = (texts(random, name, most, count) for name, most in (("k", 500), ("w", 300), ("u", 2)))
    values = pa.array([f"{one} {other}" for one, other in zip(first.to_pylist(), second.to_pylist(), strict=True)])
    return {"lines": (keys, values, skewed(keys, jittered(random, 10_000_000, 2_000_000, count)))}


def texts(random: np.random.Generator, name: str, most: int, count: int) -> pa.Array:
    """Random names."""
    return pa.array([f"{name}{n}" for n in range(most)]).take(pa.array(random.integers(0, most, count)))


def gone(random: np.random.Generator, values: pa.Array) -> pa.Array:
    """The values, every tenth a tombstone."""
    return pa.array(values.to_numpy(zero_copy_only=False), mask=random.random(len(values)) < 0.1)


def jittered(random: np.random.Generator, start: int, span: int, count: int) -> np.ndarray[Any, Any]:
    """Times that advance through a span, each up to `JITTER_MS` behind its place."""
    return start + np.arange(count) * span // count - random.integers(0, JITTER_MS, count)


def skewed(keys: pa.Array, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The times, those of partition 0 an hour ahead."""
    return times + (partitions_of(keys.cast(pa.binary()), PARTITIONS) == 0) * HOUR_MS


LARGE = {
    "re-keyed windows": Large(rekeyed_windows, events, {"counts": changelog}),
    "inner join": Large(inner_join, spans, {"joined": changelog}),
    "sessions": Large(sessions, events, {"sessions": changelog}),
    "foreign-key join": Large(foreign_key_join, changes, {"joined": table}),
    "hopping words": Large(hopping_words, lines, {"words": changelog}),
}


# --- runs ------------------------------------------------------------------------------------------------------------


def compare(name: str, seed: int, folder: Path, session: Any, count: int = ROWS) -> Iterator[tuple[str, int]]:
    """Run one of `LARGE` on both engines; by topic, what is compared and how many rows of it differ."""
    large, random = LARGE[name], np.random.default_rng([seed, *name.encode()])
    app = _application(large, folder, session, large.rows(random, count))
    app.run_natively(**{"num.stream.threads": 2})
    most = int(random.integers(30_000, 200_000))
    steps = app.run(**{"spark.kstreams.max.records": min(most, count // 5)}).commits
    for topic, kind in large.results.items():
        natively, on_spark = (rows_of(folder / "log", prefix + topic) for prefix in ("", "spark-"))
        yield f"{topic}: {len(natively):,} records, {steps} steps", difference(kind, natively, on_spark)


def _application(large: Large, folder: Path, session: Any, given: Mapping[str, Columns]) -> Application:
    builder = ks.StreamsBuilder()
    large.build(builder)
    app = Application(session, folder, builder, {}).create(*given, partitions=PARTITIONS)
    with open_log(folder / "log") as log, log.producer() as producer:
        for topic, columns in given.items():
            for batch in _batches(topic, columns):
                producer.send_batch(batch)
    return app


def _batches(topic: str, columns: Columns) -> Iterator[Any]:
    keys, values, times = columns
    encoded = (serde_of(str).encode_column(column) for column in (keys, values))
    whole = [*encoded, pa.array(times, pa.int64())]
    chosen = partitions_of(whole[0], PARTITIONS)
    for start in range(0, len(times), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        for batch, _ in split_by_partition(topic, chosen[part], *(column[part] for column in whole), None):
            yield batch
