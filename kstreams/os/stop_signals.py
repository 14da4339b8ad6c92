"""`stop_signals`: SIGINT and SIGTERM as an event that requests a stop."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)


class StopSignal(threading.Event):
    """An event that is set when an application has to stop. `signal` is the signal that has set it."""

    signal: signal.Signals | None = None


@contextmanager
def stop_signals() -> Iterator[StopSignal]:
    """Return an event that the first SIGINT or SIGTERM sets. The second signal has its usual effect.

    A signal that is ignored stays ignored. A shell script starts `kstreams run app.py &` with SIGINT ignored, so that
    Ctrl-C ends the script and not its background processes.
    """
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread can set signal handlers
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    former_handlers = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.signal = signal.Signals(number)
        logger.info("%s: committing and closing", stop.signal.name)
        stop.set()
        restore()

    for number in former_handlers:
        signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        restore()
