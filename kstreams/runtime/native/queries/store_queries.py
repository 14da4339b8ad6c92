"""`StoreQueries`: queries of one thread's stores, asked from anywhere and answered between two rounds of work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from kstreams.errors import CorruptStateError, StateError

_WAIT_S = 30.0
_CLOSED = (
    "the thread of this store has ended: while the application goes on, another thread opens the store; get it again "
    "by KafkaStreams.store"
)


class StoreQueries:
    """The queries that wait for one thread.

    Examples
    --------
    >>> queries = StoreQueries()
    >>> asked = queries.put(lambda: 6 * 7)
    >>> queries.answer(complete=lambda: None)
    >>> asked.result()
    42
    """

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._closed = False

    def put(self, query: Callable[[], Any]) -> Future[Any]:
        """Let the owning thread call `query`; its result or error is set in the future."""
        future: Future[Any] = Future()
        self._waiting.put((query, future))
        if self._closed:
            self._refuse()
        return future

    def ask(self, query: Callable[[], Any]) -> Any:
        """Put a query and wait for its result; raises TimeoutError when the thread is busy for half a minute."""
        return self.put(query).result(_WAIT_S)

    def answer(self, complete: Callable[[], None]) -> None:
        """Run the queries that wait; for the owning thread.

        Parameters
        ----------
        complete : callable
            Brings the stores up to all that was processed. What it raises ends the thread, not only the query.
        """
        while not self._waiting.empty():
            complete()
            self._answer_next()

    def _answer_next(self) -> None:
        if (waiting := self._next()) is not None:
            query, future = waiting
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
        while (waiting := self._next()) is not None:
            waiting[1].set_exception(StateError(_CLOSED))

    def _next(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        try:
            return self._waiting.get_nowait()
        except Empty:
            return None
