"""How fast the whole native engine is, log to task to log, in records a second of CPU: `python benchmarks/native.py`.

The rate is taken by CPU time of the process, all its threads together: what one core gives when nothing else runs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import kstreams as ks
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.serdes import serde_of

BATCH = 10_000
MINUTE_MS = 60_000
WORDS = 10_000


def run(folder: str | None = None, rows: int = 1_000_000) -> dict[str, float]:
    """Records a second of every measurement, each with commit and changelog; restore in changelog rows a second.

    Parameters
    ----------
    folder : str, optional
        Where the log and the stores lie; default: the temporary directory.
    rows : int
        Input records of each measurement.
    """
    root = Path(tempfile.mkdtemp(dir=folder))
    try:
        _write_events(root / "few", rows, keys=1000)
        _write_events(root / "many", rows, keys=1_000_000)
        _write_lines(root / "few", rows // 8)
        figures = {
            "stateless, three lambdas": _rate(root / "few", stateless, rows),
            "windowed count, 1,000 keys, Python": _rate(root / "few", windowed_count_python, rows),
            "windowed count, 1,000 keys, expression": _rate(root / "few", windowed_count, rows),
            "windowed count, 1,000,000 keys": _rate(root / "many", windowed_count, rows),
            "word count, words": _rate(root / "few", word_count, rows),
        }
        figures["restore, rows"] = _restore_rate(root / "many", windowed_count)
        return figures
    finally:
        shutil.rmtree(root)


def stateless(builder: ks.StreamsBuilder) -> None:
    numbers = builder.stream("events", key=str, value=int).map_values(lambda n: n + 1, value=int)
    kept = numbers.filter(lambda _, n: n % 3 != 0).map_values(lambda n: n * 2, value=int)
    kept.to("out")


def windowed_count(builder: ks.StreamsBuilder) -> None:
    windows = builder.stream("events", key=str, value=int).group_by_key()
    counts = windows.windowed_by(ks.TimeWindows(size=MINUTE_MS, grace=0)).count(materialized="counts")
    counts.to_stream(lambda windowed, _: windowed.key, key=str).to("out", value=int)


def windowed_count_python(builder: ks.StreamsBuilder) -> None:
    windows = builder.stream("events", key=str, value=int).group_by_key()
    windowed = windows.windowed_by(ks.TimeWindows(size=MINUTE_MS, grace=0))
    counts = windowed.aggregate(lambda: 0, lambda _key, _n, count: count + 1, value=int, materialized="counts")
    counts.to_stream(lambda windowed, _: windowed.key, key=str).to("out", value=int)


def word_count(builder: ks.StreamsBuilder) -> None:
    words = builder.stream("lines", key=str, value=str).flat_map_values(str.split, value=str)
    words.group_by(lambda _, word: word, key=str).count(materialized="counts").to_stream().to("out", value=int)


def _rate(folder: Path, declare: Callable[[ks.StreamsBuilder], None], rows: int) -> float:
    return rows / min(_run(folder, declare) for _ in range(2))


def _restore_rate(folder: Path, declare: Callable[[ks.StreamsBuilder], None]) -> float:
    _run(folder, declare)
    shutil.rmtree(folder / "state")
    restored: list[int] = []
    seconds = _cpu(lambda: _streams(folder, declare, lambda progress: restored.append(progress.total)))
    return max(restored) / seconds


def _run(folder: Path, declare: Callable[[ks.StreamsBuilder], None]) -> float:
    """CPU seconds of one run over all the input, into an empty state."""
    _forget(folder)
    return _cpu(lambda: _streams(folder, declare))


def _streams(folder: Path, declare: Callable[[ks.StreamsBuilder], None], on_restore: object = None) -> None:
    builder = ks.StreamsBuilder()
    declare(builder)
    settings = {"application.id": "bench", "log.dir": folder / "log", "state.dir": folder / "state"}
    streams = KafkaStreams(builder, settings, on_restore=on_restore)  # type: ignore[arg-type]
    streams.start(once=True)
    streams.wait()


def _cpu(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _forget(folder: Path) -> None:
    shutil.rmtree(folder / "state", ignore_errors=True)
    with open_log(folder / "log") as log, log.admin() as admin:
        for topic in admin.topics():
            if topic not in ("events", "lines"):
                admin.delete_topic(topic)
        admin.delete_group("bench")


def _write_events(folder: Path, rows: int, keys: int) -> None:
    random = np.random.default_rng(7)
    names = pa.array([f"key-{i:07d}".encode() for i in range(keys)], pa.binary())
    numbers = serde_of(int).encode_rows([int(i) for i in range(1000)])
    with open_log(folder / "log") as log, log.admin() as admin, log.producer() as producer:
        admin.create_topic("events")
        for start in range(0, rows, BATCH):
            chosen = names.take(pa.array(random.integers(0, keys, BATCH)))
            values = numbers.take(pa.array(random.integers(0, 1000, BATCH)))
            times = pa.array(np.arange(start, start + BATCH) // 10)
            source = TopicPartition("events", 0)
            producer.send_batch(Batch(source, np.arange(BATCH), chosen, values, times))


def _write_lines(folder: Path, lines: int) -> None:
    random = np.random.default_rng(7)
    with open_log(folder / "log") as log, log.admin() as admin, log.producer() as producer:
        admin.create_topic("lines")
        for _ in range(0, lines, BATCH):
            words = random.integers(0, WORDS, (BATCH, 8)).tolist()
            texts = pa.array([" ".join(f"w{n}" for n in line).encode() for line in words], pa.binary())
            source = TopicPartition("lines", 0)
            producer.send_batch(Batch(source, np.arange(BATCH), texts, texts, pa.array(np.arange(BATCH))))


if __name__ == "__main__":
    for name, figure in run(*sys.argv[1:2]).items():
        print(f"{name:<42} {figure:>12,.0f}/s")
