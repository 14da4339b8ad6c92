"""Applications, each run in a process of its own that tells how much memory it took."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.native.engine import run

MINUTE_MS = 60_000


def aggregate() -> ks.Topology:
    """A count per key by a Python function: record by record."""
    builder = ks.StreamsBuilder()
    counts = builder.stream("in", key=str, value=str).group_by_key().aggregate(lambda: 0, _plus_one, value=int)
    counts.to_stream().to("out")
    return builder.build()


def count() -> ks.Topology:
    """A count per key in columns."""
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    return builder.build()


def mapped() -> ks.Topology:
    """Each value in small letters, by a Python function."""
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(lambda value: value.lower(), value=str).to("out")
    return builder.build()


def repartitioned() -> ks.Topology:
    """A count behind a repartition topic, which a bounded run puts in order of time."""
    builder = ks.StreamsBuilder()
    moved = builder.stream("in", key=str, value=str).select_key(lambda key, value: f"new-{key}", key=str)
    moved.group_by_key().count().to_stream().to("out")
    return builder.build()


def suppress() -> ks.Topology:
    """Counts that wait until their window closes, which is at the end."""
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=MINUTE_MS, grace=0)
    counts = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count()
    final = counts.suppress(ks.Suppressed.until_window_closes())
    final.to_stream(lambda windowed, _: windowed.key).to("out", key=str)
    return builder.build()


def left_join() -> ks.Topology:
    """Records that wait for a partner that never comes."""
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("in", "other"))
    window = ks.JoinWindows(before=MINUTE_MS, after=MINUTE_MS, grace=0)
    left.left_join(right, lambda mine, yours: f"{mine}/{yours}", windows=window, value=str).to("out", value=str)
    return builder.build()


def _plus_one(key: str, value: str, so_far: int) -> int:
    return so_far + 1


CASES: dict[str, Callable[[], ks.Topology]] = {
    "aggregate": aggregate,
    "count": count,
    "mapped": mapped,
    "repartitioned": repartitioned,
    "suppress": suppress,
    "left_join": left_join,
}


def anonymous_bytes() -> int:
    """What the process holds in memory that no file stands behind: mapped log files are the kernel's to give back."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


class Peak(threading.Thread):
    """Looks at the memory many times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes, self._over = 0, threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.01):
            self.bytes = max(self.bytes, anonymous_bytes())

    def close(self) -> int:
        """The highest that was seen."""
        self._over.set()
        self.join()
        return max(self.bytes, anonymous_bytes())


def main(case: str, folder: str, most: str) -> None:
    """Run the case over a small log, which loads all libraries, and then over the large one."""
    for log in ("small", "large"):
        before, peak = anonymous_bytes(), Peak()
        peak.start()
        settings = {"application.id": "memory", "memory.max.bytes": int(most), "state.dir": f"{folder}/{log}-state"}
        run(CASES[case](), Config.of(settings, log_dir=f"{folder}/{log}"), until_end=True)
        taken = peak.close() - before
    print(taken)


if __name__ == "__main__":
    main(*sys.argv[1:])
