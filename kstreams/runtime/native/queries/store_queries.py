"""`StoreQueries`: queries of one thread's stores, asked from anywhere and answered between two rounds of work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from kstreams.errors import CorruptStateError, StoreNotAvailableError

_RUNS_ASKED = 100  # after a query the thread expects another one for so many runs
_CLOSED = (
    "the thread of this store has ended: while the application goes on, another thread opens the store; get it again "
    "by KafkaStreams.store"
)


class StoreQueries:
    """The queries that wait for one thread.

    Parameters
    ----------
    wake : callable
        Wakes the thread where it waits for records.

    Examples
    --------
    >>> queries = StoreQueries(wake=lambda: None)
    >>> asked = queries.put(lambda: 6 * 7)
    >>> queries.answer(complete=lambda: None)
    >>> asked.result()
    42
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._wake = wake
        self._closed = False
        self._runs_asked = 0

    def put(self, query: Callable[[], Any]) -> Future[Any]:
        """Let the owning thread call `query`; its result or error is set in the future."""
        future: Future[Any] = Future()
        self._waiting.put((query, future))
        if self._closed:
            self._refuse()
        else:
            self._wake()
        return future

    def answer(self, complete: Callable[[], None]) -> None:
        """Run the queries that wait now; for the owning thread.

        Parameters
        ----------
        complete : callable
            Brings the stores up to all that was processed. What it raises ends the thread, not only the query.
        """
        self._runs_asked -= 1
        if count := self._waiting.qsize():
            self._runs_asked = _RUNS_ASKED
            complete()
            for _ in range(count):
                self._answer_next()

    def keep_coming(self) -> bool:
        """Whether there were some lately: then the owning thread works in short runs."""
        return self._runs_asked > 0

    def _answer_next(self) -> None:
        if (pending := self._next()) is not None:
            query, future = pending
            try:
                future.set_result(query())
            except CorruptStateError as damage:
                future.set_exception(damage)
                raise  # it is the thread that rebuilds its stores
            except Exception as error:
                future.set_exception(error)

    def close(self) -> None:
        """Refuse queries that wait and further ones: the stores are closed."""
        self._closed = True
        self._refuse()

    def _refuse(self) -> None:
        while (query := self._next()) is not None:
            query[1].set_exception(StoreNotAvailableError(_CLOSED))

    def _next(self) -> tuple[Callable[[], Any], Future[object]] | None:
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None
