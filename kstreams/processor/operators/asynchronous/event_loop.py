"""The event loop on which async functions run: one thread per process, started with the first call.

All tasks share the loop, because the connections of an asyncio client belong to the loop on which they were opened, and
the client that a user's module creates serves every task. The loop has its own thread so that calls continue while the
task works, and so that applications run where a loop is running already, as in notebooks.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import TypeVar

from kstreams.os.forks import reset_in_child

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_starting = reset_in_child(threading.Lock())


def start(coroutine: Coroutine[object, object, T]) -> Future[T]:
    """Run a coroutine on the event loop. Its future may be used from any thread."""
    with _starting:
        loop = _running_loop()
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


@cache
def _running_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run, args=(loop,), name="kstreams-async", daemon=True).start()
    return loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    # `run_forever` raises if a call raises SystemExit. The loop must continue: else no call would ever end, not even
    # this one, whose future gets the exception when the loop runs again.
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException as error:
            _logger.error("an async function raised %s: %s", type(error).__name__, error)


os.register_at_fork(after_in_child=_running_loop.cache_clear)  # threads do not survive a fork
