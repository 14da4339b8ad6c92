"""A thread that writes what a producer has buffered for `linger.ms`, so that no record waits for the next one.

While there is nothing to write it has time for housekeeping.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_IDLE_S = 1.0


class LingerTimer:
    """Calls `write` some milliseconds after `start`; its thread begins with the first start.

    Parameters
    ----------
    linger_ms : int
        -1: never.
    write, idle : callable
        Neither may raise: the thread would end.
    """

    def __init__(self, linger_ms: int, write: Callable[[], None], idle: Callable[[], object]) -> None:
        self._linger_ms = linger_ms
        self._write = write
        self._idle = idle
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Something was put into an empty buffer."""
        if self._linger_ms < 0:
            return
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kstreams-linger", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # Real time on purpose: it bounds how long a record stays in memory, and decides nothing about its content.
        while not self._closed.is_set():
            if not self._wanted.wait(_IDLE_S):
                self._idle()
                continue
            self._wanted.clear()
            if not self._closed.wait(self._linger_ms / 1000):
                self._write()
