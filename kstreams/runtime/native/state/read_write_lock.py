"""`ReadWriteLock`: many threads read at once, or one writes alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """A writer that waits goes before new readers."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writer = False

    def acquire_shared(self) -> None:
        """Wait until nobody writes or waits to write."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writer)
            self._readers += 1

    def release_shared(self) -> None:
        """Undo `acquire_shared`."""
        with self._changed:
            self._readers -= 1
            self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Nobody else reads or writes inside."""
        with self._changed:
            self._changed.wait_for(lambda: not self._writer)
            self._writer = True
            self._changed.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._changed:
                self._writer = False
                self._changed.notify_all()
