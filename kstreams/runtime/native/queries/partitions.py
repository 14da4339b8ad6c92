"""The partitions of a store that queries ask, each by who may read it: the owning thread, or anyone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from kstreams.errors import StoreNotAvailableError
from kstreams.runtime.native.queries.store_queries import StoreQueries
from kstreams.state.read_only_store import Answer, Position

_WAIT_S = 30.0
Question = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class CurrentPartition:
    """A store as its task sees it now; the thread of the task answers, within half a minute.

    Parameters
    ----------
    number : int
    queries : StoreQueries
        Of the thread.
    store : Any
    position : callable
        What the store stands for while the thread answers.
    """

    number: int
    queries: StoreQueries
    store: Any
    position: Callable[[], Position]

    def begin(self, question: Question) -> Callable[[], Answer]:
        """Put a question to the thread; what is returned waits, and raises StoreNotAvailableError when it hangs."""
        return partial(self._wait, self.queries.put(partial(self._answer, question)))

    def _wait(self, future: Future[Answer]) -> Answer:
        try:
            return future.result(_WAIT_S)
        except TimeoutError:
            if future.done():
                raise  # of the question itself
            raise StoreNotAvailableError(
                f"the task of this store has not answered for {_WAIT_S:.0f} s: it is at work. Ask again, or with "
                'isolation="read_committed", which waits for no task'
            ) from None

    def _answer(self, question: Question) -> Answer:
        return Answer(question(self.store), self.position())


@dataclass(frozen=True, slots=True)
class GlobalPartition:
    """A global table in memory, read while it does not change.

    Parameters
    ----------
    ask : callable
        Calls a function while the table does not change.
    store : Any
    """

    ask: Callable[[Callable[[], Any]], Any]
    store: Any
    number = -1

    def begin(self, question: Question) -> Callable[[], Answer]:
        """Answer a question."""
        return lambda: Answer(self.ask(partial(question, self.store)), {})
