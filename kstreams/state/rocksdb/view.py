"""`RocksView`: the bytes of one store as they were at a moment, for any thread to read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any, TypeVar

from kstreams.errors import StoreNotAvailableError
from kstreams.state.column_family import Chunk
from kstreams.state.rocksdb.failures import unreadable
from kstreams.state.rocksdb.rows import ABOUT, DATA, first, in_chunks, marked, read, read_back, read_one

T = TypeVar("T")

_MANY = 1_000  # rows: fewer take less time than a rest


class RocksView:
    """A family that is only read (see `ReadFamily`).

    It is one iterator of RocksDB, which sees what was there when it was made; a snapshot of rocksdict does not cover
    its iterators. The iterator never leaves the view: one that is alive keeps the database from being closed.

    Parameters
    ----------
    rows : RdictIter
    path : Path
        Of the database.
    estimated_rows : int
    rest : callable
        Called after a part of a scan with the seconds of CPU time that it took, with all that its reader did.
    """

    frozen = True
    durable = True

    def __init__(self, rows: Any, path: Path, estimated_rows: int, pause: Callable[[float], None]) -> None:
        self._rows = rows
        self._path = path
        self._estimated_rows = estimated_rows
        self._rest = pause
        self._lock = threading.Lock()
        self.offset, self.observed_ms = marked(read_one(rows, ABOUT))

    def get(self, key: bytes) -> bytes | None:
        return self._call(read_one, DATA + key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        take = partial(self._call, read_back if reverse else read)
        started = thread_time()
        for chunk in in_chunks(take, low, high, reverse):
            yield chunk
            if len(chunk.values) >= _MANY:
                self._rest(thread_time() - started)
                started = thread_time()

    def first_from(self, low: bytes) -> bytes | None:
        return first(self._call(read, low, None, 1))

    def estimated_rows(self) -> int:
        return self._estimated_rows

    def release(self) -> None:
        """Let go of the iterator; waits for the part that is being read."""
        with self._lock:
            self._rows = None

    def _call(self, call: Callable[..., T], *args: Any) -> T:
        with self._lock:
            if self._rows is None:
                raise StoreNotAvailableError(
                    f"the stores at {self._path} were closed: their task has moved or stopped; ask again"
                )
            try:
                return call(self._rows, *args)
            except Exception as error:  # rocksdict raises nothing more special
                raise unreadable(self._path, error) from error
