"""`Workers`: supervises the processes of `kstreams run --workers N`, and starts a process again that fails."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from time import monotonic, sleep
from typing import IO

from kstreams.cli import lines
from kstreams.errors import KStreamsError

logger = logging.getLogger(__name__)

_POLL_S = 0.05
_QUICK_S = 10.0  # a worker that fails within this time after its start will probably fail again
_MOST_QUICK = 3
_PAUSE_S = 1.0


class Workers:
    """Processes that run the same command. Each is a member of the application's group.

    Parameters
    ----------
    command : sequence of str
        The arguments of `kstreams`.
    count : int
    """

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._command = [sys.executable, "-m", "kstreams", *command]
        self._workers = {number: _Worker(self._command, number) for number in range(1, count + 1)}

    def run(self, stop: threading.Event) -> None:
        """Supervise the processes until `stop` is set or all have ended. Then stop them, so that they commit.

        Raises
        ------
        KStreamsError
            If a worker fails several times soon after its start.
        """
        try:
            while not stop.wait(_POLL_S):
                if all([worker.has_ended() for worker in self._workers.values()]):
                    return
        finally:
            for worker in self._workers.values():
                worker.stop()
            for worker in self._workers.values():
                worker.wait()


class _Worker:
    """A process, and the processes that replace it."""

    def __init__(self, command: Sequence[str], number: int) -> None:
        self._command = command
        self._number = number
        self._failures = 0
        self._start()

    def has_ended(self) -> bool:
        """Return whether the process has ended successfully. A process that failed is started again."""
        status = self._process.poll()
        if not status:
            return status == 0
        is_quick = monotonic() - self._started_s < _QUICK_S
        self._failures = self._failures + 1 if is_quick and status > 0 else 0
        if self._failures == _MOST_QUICK:
            raise KStreamsError(
                f"worker {self._number} failed {_MOST_QUICK} times within {_QUICK_S:g} s of its start: its last lines "
                "above say why."
            )
        reason = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
        logger.warning("worker %d (process %d) %s: it is started again", self._number, self._process.pid, reason)
        sleep(_PAUSE_S if status > 0 else 0)
        self._start()
        return False

    def stop(self) -> None:
        """Let the process commit and end."""
        if self._process.poll() is None:
            self._process.terminate()

    def wait(self) -> None:
        """Wait for the end of the process, and for its last line."""
        self._process.wait()
        for printer in self._printers:
            printer.join()

    def _start(self) -> None:
        self._started_s = monotonic()
        # A session of its own, so that Ctrl-C reaches the supervisor alone, which lets all workers commit.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        streams = [(self._process.stdout, sys.stdout), (self._process.stderr, sys.stderr)]
        self._printers = [self._printing(source, target) for source, target in streams if source is not None]

    def _printing(self, source: IO[bytes], target: IO[str]) -> threading.Thread:
        printer = threading.Thread(target=self._print, args=(source, target), daemon=True)
        printer.start()
        return printer

    def _print(self, source: IO[bytes], target: IO[str]) -> None:
        prefix = "" if lines.are_json() else f"worker {self._number}: "
        for line in source:
            target.write(f"{prefix}{line.decode(errors='replace')}")
            target.flush()
