"""`QueryThread`: the thread of the driver in which a query runs that is none of Spark's own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark import InheritableThread

from kstreams.errors import KStreamsError
from kstreams.runtime.spark.exchange.reports import as_kstreams_error


class QueryThread:
    """A thread with the error that ended it. Its jobs have the Spark properties of the thread that starts it."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        """Set when the work is to end."""
        self._thread = threading.Thread()  # not started: the query waits
        self._error: Exception | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Start the thread. The work ends by itself, or when `stopped` is set; later errors are of no interest."""
        self._thread = InheritableThread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        """Return whether the work goes on."""
        return self._thread.is_alive()

    def join(self, seconds: float | None = None) -> None:
        """Wait until the work has ended, at most `seconds`."""
        if self.is_alive():
            self._thread.join(seconds)

    def ended(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return True if the work has ended. Raises the error that ended it."""
        if self._thread.ident is None:
            return False
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not self.is_alive()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except KStreamsError as error:
            self._error = error
        except Exception as error:
            if not self.stopped.is_set():
                self._error = as_kstreams_error(error)
                self._error.__cause__ = error
