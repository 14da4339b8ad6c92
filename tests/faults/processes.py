"""The processes of one run of a cluster: found by a mark in their environment, ended by their id."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "RUN_OF_FAULTS"
EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Process(NamedTuple):
    """A process that lives."""

    pid: int
    parent: int
    command: str


class Processes(dict[int, Process]):
    """All processes of a run at one moment, by id."""

    @classmethod
    def of(cls, mark: str) -> Processes:
        """Those with a mark in their environment, but this one."""
        wanted = f"{MARK}={mark}".encode()
        found = cls()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it is gone, or not ours
                if wanted in (folder / "environ").read_bytes().split(b"\0") and folder.name != str(os.getpid()):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                    found[int(folder.name)] = Process(int(folder.name), parent, command)
        return found

    def executors(self) -> list[int]:
        """The JVMs in which executors run."""
        return [each.pid for each in self.values() if EXECUTOR_CLASS in each.command.split()]

    def python_workers(self) -> list[int]:
        """What the daemons of executors have forked."""
        executors = set(self.executors())
        daemons = {each.pid for each in self.values() if each.parent in executors}
        return [each.pid for each in self.values() if each.parent in daemons]


def end(pid: int) -> bool:
    """Kill a process; whether there was one."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end_all(mark: str, seconds: float = 30) -> int:
    """Kill what a run has left behind; how many processes that were.

    They have some seconds to go by themselves: workers of a dead executor do.
    """
    deadline = time.monotonic() + seconds
    while Processes.of(mark) and time.monotonic() < deadline:
        time.sleep(0.2)
    left = Processes.of(mark)
    while (alive := Processes.of(mark)) and time.monotonic() < deadline + seconds:
        for pid in alive:
            end(pid)
        time.sleep(0.1)
    return len(left)
