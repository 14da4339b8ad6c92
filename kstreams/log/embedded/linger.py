"""A thread that writes what a producer has buffered for `linger.ms`, so that no record waits for the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Linger:
    """Calls `write` some milliseconds after `start`; its thread begins with the first start.

    Parameters
    ----------
    linger_ms : int
        -1: never.
    write : callable
    """

    def __init__(self, linger_ms: int, write: Callable[[], None]) -> None:
        self._linger_ms, self._write = linger_ms, write
        self._wanted, self._closed = threading.Event(), threading.Event()
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
            self._wanted.wait()
            self._wanted.clear()
            if not self._closed.wait(self._linger_ms / 1000):
                self._write()
