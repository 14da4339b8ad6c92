"""`BackgroundReader`: a reader whose batches come from a thread, so that a slow system does not stop the worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeAlias

import pyarrow as pa

from kstreams.connectors.api import Position, SourceBatch

Batches: TypeAlias = Callable[[Event], Iterator[SourceBatch | None]]
"""Yields batches until the event is set, and None whenever it has to wait for new ones."""

_MAX_ROWS = 10_000
_WAIT_S = 0.2


class BackgroundReader:
    """Reads batches ahead in a thread. A bounded number waits, so that a slow topic slows down the other system.

    Parameters
    ----------
    batches : callable
    name : str
        The name of the thread.
    ahead : int
        The number of batches that wait at most.
    """

    def __init__(self, batches: Batches, name: str, ahead: int = 2) -> None:
        self._batches = batches
        self._results: Queue[Future[SourceBatch | None]] = Queue(ahead)
        self._errors = deque[Exception]()
        self._closing = Event()
        self._is_caught_up = False
        Thread(target=self._run, name=name, daemon=True).start()

    def read(self) -> SourceBatch | None:
        """Return the records that wait. None if there are no new ones.

        If it is not known whether there are, `read` waits for the answer, so that a bounded run does not end before.
        """
        batches = list[SourceBatch]()
        timeout_s = _WAIT_S if self._is_caught_up else None
        while sum(len(batch.values) for batch in batches) < _MAX_ROWS:
            if self._errors:
                raise self._errors.popleft()
            try:
                batch = self._results.get(block=not batches, timeout=timeout_s).result()
            except Empty:
                break
            except Exception as error:
                self._errors.append(error)
                if batches:
                    break  # the records before the error come first
                continue
            self._is_caught_up = batch is None
            if batch is not None:
                batches.append(batch)
            elif not batches:
                break
        return merged(batches) if batches else None

    def committed(self, position: Position) -> None:
        """Do nothing: the other system keeps its data."""

    def close(self) -> None:
        """Let the thread end. A request that waits for a response ends with its timeout."""
        self._closing.set()

    def _run(self) -> None:
        result: Future[SourceBatch | None]
        try:
            for batch in self._batches(self._closing):
                result = Future()
                result.set_result(batch)
                self._hand_over(result)
                if self._closing.is_set():
                    return
        except Exception as error:
            result = Future()
            result.set_exception(error)
            self._hand_over(result)

    def _hand_over(self, result: Future[SourceBatch | None]) -> None:
        while not self._closing.is_set():
            try:
                self._results.put(result, timeout=_WAIT_S)
            except Full:
                continue
            return


def merged(batches: Sequence[SourceBatch]) -> SourceBatch:
    """Return consecutive batches as one. All that have rows have keys and timestamps, or none has.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = merged([SourceBatch(pa.array(["a"]), 1), SourceBatch(pa.array(["b"]), 2)])
    >>> batch.values.to_pylist(), batch.position
    (['a', 'b'], 2)
    """
    with_rows = [batch for batch in batches if len(batch.values)] or batches[-1:]
    return SourceBatch(
        values=pa.concat_arrays([batch.values for batch in with_rows]),
        position=batches[-1].position,
        keys=_concatenated([batch.keys for batch in with_rows]),
        timestamps=_concatenated([batch.timestamps for batch in with_rows]),
        unreadable=[row for batch in batches for row in batch.unreadable],
    )


def _concatenated(columns: Sequence[pa.Array | None]) -> pa.Array | None:
    parts = [column for column in columns if column is not None]
    return pa.concat_arrays(parts) if parts else None
