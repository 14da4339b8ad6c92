"""`Work`: questions that threads answer, so many at a time and each within its deadline; scans in single file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import thread_time
from typing import TypeVar

from kstreams.server.refusal import Refusal

Result = TypeVar("Result")
# all scans together take at most a sixth of the time, and their JSON about as much less
_RESTS = 5
_LONGEST_REST_S = 0.2


class Work:
    """Threads that wait for stores.

    Parameters
    ----------
    most : int
        How many questions at a time; a question whose deadline has passed counts until its thread is free again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._busy = 0
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="kstreams-server")

    async def do(self, question: Callable[[], Result], seconds: float) -> Result:
        """What a function returns.

        Raises
        ------
        Refusal
            When all threads are busy, or it takes longer than so many seconds.
        """
        if self._busy >= self._most:
            raise Refusal(503, "too many questions at a time: ask again", retry_after_s=1)
        self._busy += 1
        loop = asyncio.get_running_loop()
        future = self._threads.submit(question)
        future.add_done_callback(lambda _: _unless_closed(loop, self._free))
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), seconds)
        except TimeoutError:
            future.cancel()
            raise Refusal(504, "there was no answer in time") from None

    def close(self) -> None:
        """Take no more questions."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _free(self) -> None:
        self._busy -= 1


class SequentialWork:
    """Lets one long question after the other be answered, with rests in between while the application is busy.

    Several at once would leave the stream threads little of the interpreter, however long each of them rests.

    Parameters
    ----------
    work : Work
    is_busy : callable
    """

    def __init__(self, work: Work, is_busy: Callable[[], bool]) -> None:
        self._work = work
        self._is_busy = is_busy
        self._turn = asyncio.Lock()

    async def do(self, question: Callable[[], Result], seconds: float) -> Result:
        """As `Work.do`; the time until its turn counts.

        Raises
        ------
        Refusal
            When it takes longer than so many seconds.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        try:
            await asyncio.wait_for(self._turn.acquire(), seconds)
        except TimeoutError:
            raise Refusal(503, "too much is read at a time: ask again", retry_after_s=1) from None
        took_s = 0.0
        try:
            answer, took_s = await self._work.do(partial(_timed, question), max(until - loop.time(), 0.001))
        finally:
            rest_s = min(_LONGEST_REST_S, took_s * _RESTS) if self._is_busy() else 0.0
            loop.call_later(rest_s, self._turn.release)
        return answer


def _timed(question: Callable[[], Result]) -> tuple[Result, float]:
    """What a function returns, and the seconds of CPU time that it took."""
    start = thread_time()
    return question(), thread_time() - start


def _unless_closed(loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(then)
