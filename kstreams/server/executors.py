"""`BoundedExecutor` runs functions in threads, each within a deadline; `SequentialExecutor` runs one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import thread_time
from typing import TypeVar

from kstreams.server.http_error import HttpError

Result = TypeVar("Result")
# All scans together take at most a sixth of the CPU time, and the encoding of their JSON about as much.
_PAUSE_FACTOR = 5
_MAX_PAUSE_S = 0.2
_MIN_TIMEOUT_S = 0.001


class BoundedExecutor:
    """Threads that wait for stores.

    Parameters
    ----------
    max_concurrency : int
        The greatest number of functions at a time. A function whose deadline has passed counts until it returns.
    """

    def __init__(self, max_concurrency: int) -> None:
        self._max_concurrency = max_concurrency
        self._running = 0
        self._threads = ThreadPoolExecutor(max_concurrency, thread_name_prefix="kstreams-server")

    async def run(self, function: Callable[[], Result], timeout_s: float) -> Result:
        """Return the result of a function.

        Raises
        ------
        HttpError
            If all threads are busy, or the function takes longer than the timeout.
        """
        if self._running >= self._max_concurrency:
            raise HttpError(503, "the server is busy with other requests: ask again", retry_after_s=1)
        self._running += 1
        loop = asyncio.get_running_loop()
        future = self._threads.submit(function)
        future.add_done_callback(lambda _: _call_in_loop(loop, self._release))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), timeout_s)
        except TimeoutError:
            future.cancel()
            raise HttpError(504, "there was no answer in time") from None

    def close(self) -> None:
        """Accept no more functions."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _release(self) -> None:
        self._running -= 1


class SequentialExecutor:
    """Runs long functions one at a time, and pauses after each while the application is busy.

    Several at a time would leave the stream threads little of the interpreter, however long each of them pauses.

    Parameters
    ----------
    executor : BoundedExecutor
    is_busy : callable
    """

    def __init__(self, executor: BoundedExecutor, is_busy: Callable[[], bool]) -> None:
        self._executor = executor
        self._is_busy = is_busy
        self._lock = asyncio.Lock()

    async def run(self, function: Callable[[], Result], timeout_s: float) -> Result:
        """Return the result of a function. The timeout includes the wait for earlier functions.

        Raises
        ------
        HttpError
            If all threads are busy, or the function has not returned within the timeout.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        try:
            await asyncio.wait_for(self._lock.acquire(), timeout_s)
        except TimeoutError:
            raise HttpError(503, "the server is busy with other scans: ask again", retry_after_s=1) from None
        cpu_s = 0.0
        try:
            remaining_s = max(deadline - loop.time(), _MIN_TIMEOUT_S)
            result, cpu_s = await self._executor.run(partial(_timed, function), remaining_s)
        finally:
            pause_s = min(_MAX_PAUSE_S, cpu_s * _PAUSE_FACTOR) if self._is_busy() else 0.0
            loop.call_later(pause_s, self._lock.release)
        return result


def _timed(function: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a function, and the seconds of CPU time that it took."""
    start_s = thread_time()
    return function(), thread_time() - start_s


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)
