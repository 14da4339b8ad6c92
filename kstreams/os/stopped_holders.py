"""Kills a process that is stopped (SIGSTOP, Ctrl-Z) while it holds a lock for which another process waits.

A stopped process keeps its locks. To take the lock from it would not be enough: the files are open in it, and when it
goes on, it writes what others have written meanwhile. So it is ended, as a crash would end it, and the system releases
its locks. A process that is only slow, is traced by a debugger, or whose state `/proc` does not tell, is left alone.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from kstreams.os.file_lock import try_lock

_logger = logging.getLogger(__name__)

PAUSE_S = 0.5
CHECKS = 10
"""A holder is killed when so many checks in succession found it stopped: 5 s. Checks are counted, not time, because the
process that waits may have been stopped too."""


class HeldLock(NamedTuple):
    """A lock of the system on a file.

    Parameters
    ----------
    path : str
    kind : {"WRITE", "READ"}
        An exclusive or a shared lock.
    first_byte : int
        Of the locked range.
    """

    path: str
    kind: str = "WRITE"
    first_byte: int = 0

    def holders(self) -> set[int]:
        """Return the processes that hold the lock, as far as the system tells them."""
        try:
            status = os.stat(self.path)
            lines = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return set()
        file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        held = ([self.kind], [file, str(self.first_byte)])
        locks = [fields for fields in map(str.split, lines) if fields[1] != "->" and (fields[3:4], fields[5:7]) == held]
        return {int(fields[4]) for fields in locks} - {0, -1}  # of another namespace

    def stopped_holders(self) -> set[int]:
        """Return the processes that hold the lock and are stopped."""
        return {pid for pid in self.holders() if _is_stopped(pid)}

    def kill_stopped(self, pids: Iterable[int]) -> None:
        """Kill those of the processes that are stopped and hold the lock."""
        for pid in pids:
            _kill(pid, self)


class LockWaits:
    """The locks for which threads of this process wait, and the thread that looks at their holders."""

    def __init__(self) -> None:
        self._paths: Counter[str] = Counter()
        self._mutex = threading.Lock()
        self._watcher: threading.Thread | None = None

    def forget(self) -> None:
        """Start anew in a forked child, which has no threads of its parent."""
        self._paths.clear()
        self._mutex = threading.Lock()
        self._watcher = None

    @contextmanager
    def waiting(self, path: str) -> Iterator[None]:
        """Kill a holder of the lock that is stopped for 5 s of the block."""
        with self._mutex:
            self._paths[path] += 1
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="kstreams-lock-waits", daemon=True)
                self._watcher.start()
        try:
            yield
        finally:
            with self._mutex:
                self._paths[path] -= 1

    def _watch(self) -> None:
        pause = threading.Event()
        checks: Counter[tuple[str, int]] = Counter()
        while paths := self._waiting_paths():
            stopped = [(path, pid) for path in paths for pid in HeldLock(path).stopped_holders()]
            checks = Counter({holder: checks[holder] + 1 for holder in stopped})
            for (path, pid), count in checks.items():
                if count > CHECKS:
                    HeldLock(path).kill_stopped([pid])
            pause.wait(PAUSE_S)

    def _waiting_paths(self) -> list[str]:
        with self._mutex:
            paths = [path for path, waits in self._paths.items() if waits > 0]
            self._paths = Counter({path: self._paths[path] for path in paths})
            if not paths:
                self._watcher = None
        return paths


WAITS = LockWaits()
os.register_at_fork(after_in_child=WAITS.forget)


def lock(file: int, path: Path, *, shared: bool = False) -> None:
    """Lock an open file, and wait for its holder, which is killed if it is stopped."""
    if not try_lock(file, shared=shared):
        with WAITS.waiting(str(path)):
            fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _kill(pid: int, lock: HeldLock) -> None:
    with suppress(ProcessLookupError):
        process = os.pidfd_open(pid)
        try:
            # The id may have come to another process before the descriptor was opened.
            if pid in lock.stopped_holders():
                signal.pidfd_send_signal(process, signal.SIGKILL)
                _logger.warning("Process %d was stopped while it held the lock %s, so it was killed.", pid, lock.path)
        except PermissionError:
            advice = "let it go on (SIGCONT) or kill it"
            _logger.error("Process %d is stopped while it holds the lock %s: %s.", pid, lock.path, advice)
        finally:
            os.close(process)
