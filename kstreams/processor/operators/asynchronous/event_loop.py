"""The event loop on which async functions run: one thread per process, started with the first call.

There is one for all tasks because what asyncio clients keep, connections above all, belongs to the loop where it was
first used, and the client that a module makes serves every task. It has its own thread so that calls go on while the
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

from kstreams.os.forks import of_module

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_starting = of_module(threading.Lock())


def start(coroutine: Coroutine[object, object, T]) -> Future[T]:
    """Let a coroutine run beside the caller; the future may be asked, waited for and cancelled from any thread."""
    with _starting:
        loop = _running_loop()
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


@cache
def _running_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run, args=(loop,), name="kstreams-async", daemon=True).start()
    return loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    # What comes through `run_forever` is a call that left by sys.exit: its future tells who waits for it, once the loop
    # goes on, and without the loop nobody would hear of any call.
    while not loop.is_closed():
        try:
            loop.run_forever()
        except BaseException as error:
            _logger.error("an async function left by %s: %s", type(error).__name__, error)


os.register_at_fork(after_in_child=_running_loop.cache_clear)  # threads do not survive a fork
