"""`StoreQueries`: a queue of queries. Any thread adds queries, and a stream thread answers them between two rounds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from kstreams.errors import CorruptStateError, StoreNotAvailableError

_RUNS_AFTER_QUERY = 100
"""The number of runs after a query for which the thread expects another query."""
_CLOSED = (
    "the thread of this store has ended: if the application runs, another thread opens the store; get the store again "
    "by KafkaStreams.store"
)


class StoreQueries:
    """The queries for one thread.

    Parameters
    ----------
    wake : callable
        Wakes the thread if it waits for records.

    Examples
    --------
    >>> queries = StoreQueries(wake=lambda: None)
    >>> future = queries.put(lambda: 6 * 7)
    >>> queries.answer(complete=lambda: None)
    >>> future.result()
    42
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._wake = wake
        self._closed = False
        self._remaining_runs = 0

    def put(self, query: Callable[[], Any]) -> Future[Any]:
        """Have the owning thread call `query`. The future gets the result or the error."""
        future: Future[Any] = Future()
        self._waiting.put((query, future))
        if self._closed:
            self._refuse()
        else:
            self._wake()
        return future

    def answer(self, complete: Callable[[], None]) -> None:
        """Answer the queries that wait now. Only the owning thread calls this.

        Parameters
        ----------
        complete : callable
            Applies all processed records to the stores. An error of it ends the thread, not only the query.
        """
        self._remaining_runs -= 1
        if count := self._waiting.qsize():
            self._remaining_runs = _RUNS_AFTER_QUERY
            complete()
            for _ in range(count):
                self._answer_next()

    def were_recent(self) -> bool:
        """Return True if there were queries recently. The owning thread then works in short runs."""
        return self._remaining_runs > 0

    def _answer_next(self) -> None:
        if (pending := self._next()) is not None:
            query, future = pending
            try:
                future.set_result(query())
            except CorruptStateError as damage:
                future.set_exception(damage)
                raise  # the thread has to rebuild its stores
            except Exception as error:
                future.set_exception(error)

    def close(self) -> None:
        """Refuse waiting and later queries, because the stores are closed."""
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
