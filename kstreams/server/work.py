"""`Work`: questions that threads answer, so many at a time and each within its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kstreams.server.refusal import Refusal

Result = TypeVar("Result")


class Work:
    """Threads that wait for stores.

    Parameters
    ----------
    most : int
        How many questions at a time; a question whose deadline has passed counts until its thread is free again.
    """

    def __init__(self, most: int) -> None:
        self._most, self._busy = most, 0
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


def _unless_closed(loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(then)
