"""What queries of a running application cost: how long look-ups and scans take, idle and busy, and what the tasks lose.

One application with one thread, which has two tasks: a table of a million keys, which is read, and a count over ten
thousand keys record by record, which keeps the thread busy. Times are in milliseconds; the rate of the busy thread is
compared with its rate in the same process while nobody asks. Garbage is collected as seldom as in `kstreams run`.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks.job import write
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.os.garbage_collection import infrequent_garbage_collection
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.serdes import serde_of

KEYS, COUNTED = 1_000_000, 10_000
MOST_PER_SECOND = 2_000_000
WINDOW_S = 3.0  # how long a busy measurement takes
LOOKUPS = 1_000
_PAUSE_S = 0.002  # between two questions of one asker


def run() -> dict[str, float]:
    """How long look-ups and scans take, idle and busy, and which part of its rate a busy thread keeps."""
    with tempfile.TemporaryDirectory(prefix="kstreams-queries-") as folder, infrequent_garbage_collection():
        fill(Path(folder) / "log")
        settings = {"application.id": "queries", "log.dir": f"{folder}/log", "state.dir": f"{folder}/state"}
        with ks.KafkaStreams(topology(), settings) as streams:
            streams.start()
            wait_for_all(streams)
            figures = _idle(streams)
            feed(Path(folder) / "log", 5 * WINDOW_S)
            return figures | _busy(streams)


def topology() -> ks.Topology:
    """The table that is read, and the count that keeps the thread busy."""
    builder = ks.StreamsBuilder()
    builder.table("rows", key=str, value=int, materialized=ks.Materialized("rows", queryable=True))
    counted = builder.stream("events", key=str, value=int).filter(lambda _, number: number >= 0)
    counted.group_by_key().count(materialized="counts")
    return builder.build()


def _idle(streams: KafkaStreams) -> dict[str, float]:
    committed, current = streams.store("rows", isolation="read_committed"), streams.store("rows")
    keys, start = _keys(100_000), perf_counter()
    for key in keys:
        committed.get(key)
    figures = {"committed look-ups a second, idle": len(keys) / (perf_counter() - start)}
    figures |= _percentiles("committed, idle", [_took(committed.get, key) for key in _keys(LOOKUPS)])
    figures |= _percentiles("current, idle", [_took(current.get, key) for key in _keys(LOOKUPS)])
    return figures | {"scan of a million rows, idle (s)": _took(lambda _: committed.all(), None) / 1_000}


def _busy(streams: KafkaStreams) -> dict[str, float]:
    wait(lambda: processed(streams) > KEYS)
    committed, current = streams.store("rows", isolation="read_committed"), streams.store("rows")
    alone = _rate(streams, lambda: sleep(0.1))[0]
    figures = {"records a second, nobody asks": alone}
    asked: dict[str, Callable[[], Any]] = {
        "committed, busy": lambda: committed.get(random.choice(_SOME)),
        "current, busy": lambda: current.get(random.choice(_SOME)),
        "scan, busy": lambda: committed.range("k0000000", "k0099999"),
    }
    for name, ask in asked.items():
        rate, times = _rate(streams, ask)
        figures[f"{name}: part of the rate (ratio)"] = rate / alone
        figures |= _percentiles(name, times)
    return figures


def _rate(streams: KafkaStreams, ask: Callable[[], Any]) -> tuple[float, list[float]]:
    """Records a second while a thread asks, and how long each question took."""
    stopping, times = threading.Event(), list[float]()

    def asking() -> None:
        while not stopping.is_set():
            sleep(_PAUSE_S)
            times.append(_took(lambda _: ask(), None))

    asker, before, start = threading.Thread(target=asking), processed(streams), perf_counter()
    asker.start()
    sleep(WINDOW_S)
    done, seconds = processed(streams) - before, perf_counter() - start
    stopping.set()
    asker.join()
    require_busy(streams)
    return done / seconds, times


def _percentiles(name: str, times: list[float]) -> dict[str, float]:
    return {f"{name}, p50 (ms)": float(np.percentile(times, 50)), f"{name}, p99 (ms)": float(np.percentile(times, 99))}


def _took(call: Callable[[Any], Any], argument: Any) -> float:
    """Milliseconds of a call."""
    start = perf_counter()
    call(argument)
    return (perf_counter() - start) * 1_000


def _keys(count: int) -> list[str]:
    return random.Random(7).choices(_SOME, k=count)


def wait_for_all(streams: KafkaStreams) -> None:
    """Wait until all rows are committed."""
    wait(lambda: streams.state is State.RUNNING and processed(streams) >= KEYS)
    wait(lambda: streams.store("rows", isolation="read_committed").get(f"k{KEYS - 1:07}") is not None)


def processed(streams: KafkaStreams) -> int:
    return streams.progress().records_in


def wait(condition: Callable[[], bool]) -> None:
    while not condition():
        sleep(0.05)


def fill(log: Path) -> None:
    numbers = np.arange(KEYS)
    write(log, "rows", _encoded(str, [f"k{number:07}" for number in numbers]), _encoded(int, numbers), numbers)
    with open_log(log) as home, home.admin() as admin:
        admin.create_topic("events", 1)


def feed(log: Path, seconds: float) -> None:
    """More than the thread can count in so much time."""
    keys = _encoded(str, [f"e{number % COUNTED}" for number in range(50_000)])
    values, times = _encoded(int, range(50_000)), np.arange(50_000)
    with open_log(log) as home, home.producer() as producer:
        for _ in range(int(seconds * MOST_PER_SECOND) // 50_000):
            producer.send_batch(Batch(TopicPartition("events", 0), times, keys, values, pa.array(times)))


def require_busy(streams: KafkaStreams) -> None:
    """What was measured of a thread that has nothing to do says nothing."""
    assert streams.progress().lag, "all records are counted: feed more"


def _encoded(kind: Any, values: Any) -> pa.Array:
    return serde_of(kind).encode_column(pa.array(values))


_SOME = [f"k{number:07}" for number in range(0, KEYS, 97)]
