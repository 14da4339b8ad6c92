"""What a process and its children take: CPU seconds and memory, sampled, beside the rest of the machine."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sampler(threading.Thread):
    """Samples a tree of processes five times a second.

    Parameters
    ----------
    root : int
        The first process of the tree.
    """

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._stopping = threading.Event()
        self._cpu_of: dict[int, float] = {}
        self._times: list[float] = []
        self._cpu: list[float] = []
        self.peak_bytes = 0

    def run(self) -> None:
        """Sample until `stop`."""
        while not self._stopping.wait(0.2):
            self._sample()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self.join()

    def cpu_until(self, moment: float) -> float:
        """Return the CPU seconds of the tree up to a moment of `time.monotonic`."""
        if not self._times:
            return 0.0
        return self._cpu[min(bisect_left(self._times, moment), len(self._times) - 1)]

    def is_idle(self, seconds: float) -> bool:
        """Return whether the tree took less than a tenth of a core in the last seconds."""
        now = time.monotonic()
        return bool(self._cpu) and self._cpu[-1] - self.cpu_until(now - seconds) < seconds / 10

    def _sample(self) -> None:
        processes = dict(_processes())
        tree = {self._root}
        while more := {process for process, (parent, *_) in processes.items() if parent in tree} - tree:
            tree |= more
        alive = [process for process in tree if process in processes]
        self._cpu_of.update((process, processes[process][1]) for process in alive)
        self.peak_bytes = max(self.peak_bytes, sum(processes[process][2] for process in alive))
        self._cpu.append(sum(self._cpu_of.values()))
        self._times.append(time.monotonic())


def machine_cpu() -> float:
    """Return the CPU seconds of everything on the machine since its start."""
    busy = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(busy) - busy[3] - busy[4]) / _TICK


def cpu_of(process: int) -> float:
    """Return the CPU seconds of one process."""
    fields = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _processes() -> list[tuple[int, tuple[int, float, int]]]:
    """Return the parent, the CPU seconds and the resident bytes of every process."""
    rows = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            seconds = (int(fields[11]) + int(fields[12])) / _TICK
            rows.append((int(entry), (int(fields[1]), seconds, int(fields[21]) * _PAGE)))
    return rows
