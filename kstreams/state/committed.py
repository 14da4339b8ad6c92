"""`CommittedViews`: the stores of a task as of its last commit, which all threads may read without the task.

RocksDB has only committed rows. So a view is created when a thread reads it, and costs the task nothing before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from kstreams.errors import StoreNotAvailableError
from kstreams.kernel.batch import TopicPartition
from kstreams.state.column_family import ReadFamily
from kstreams.state.live_budget import MIB, LiveBudget
from kstreams.state.store_builder import StoreBuilder

_READER_BYTES = 4 * MIB
_MOVED = "the stores of this task are closed: it has moved or stopped; get the store again by KafkaStreams.store"


class FrozenFamily(ReadFamily, Protocol):
    """Rows that do not change until they are released."""

    def release(self) -> None:
        """Release the files; further reads raise StoreNotAvailableError."""
        ...


class ViewableFamily(Protocol):
    """A family that can return a view of its present rows."""

    def view(self, pause: Callable[[float], None]) -> FrozenFamily:
        """Return the present rows; `pause` is called between parts of a scan, with the CPU seconds of a part."""
        ...


class CommittedView:
    """The stores of a task as of one commit.

    Parameters
    ----------
    families : mapping of str to FrozenFamily
        The rows by store.
    builders : mapping of str to StoreBuilder
    position : mapping of TopicPartition to int
        The last processed offset of each input.
    """

    def __init__(
        self,
        families: Mapping[str, FrozenFamily],
        builders: Mapping[str, StoreBuilder],
        position: Mapping[TopicPartition, int],
    ) -> None:
        self._families = families
        self._builders = builders
        self.position = position
        self._stores: dict[str, Any] = {}
        self._opening = threading.Lock()
        self.readers = 0

    def store(self, name: str) -> Any:
        """Return a store with the read methods of its kind, which several threads may call."""
        store = self._stores.get(name)
        return self._open(name) if store is None else store

    def _open(self, name: str) -> Any:
        with self._opening:
            if name not in self._stores:
                builder = self._builders[name]
                budget = LiveBudget(_READER_BYTES).loading(0)
                self._stores[name] = builder.kind.open(builder, self._families[name], budget)
            return self._stores[name]

    def release(self) -> None:
        """Release the files."""
        for family in self._families.values():
            family.release()


class CommittedViews:
    """The committed views of one task: the present one, and earlier ones that are still read.

    Parameters
    ----------
    builders : sequence of StoreBuilder
        The stores that have views.
    families : mapping of str to ViewableFamily
        The rows of the stores.

    Attributes
    ----------
    rest : callable
        Called between parts of a scan with the CPU seconds of a part, so that it can let the task work.
    listeners : set of callable
        The writing thread calls them after each change, and when the stores close.
    """

    def __init__(self, builders: Sequence[StoreBuilder], families: Mapping[str, ViewableFamily]) -> None:
        self._builders = {builder.name: builder for builder in builders}
        self._families = families
        self._position: Mapping[TopicPartition, int] = {}
        self._writing = threading.Lock()  # held while rows are written, or a view is created
        self._lending = threading.Lock()  # held for a moment while `_view` and `_read` change
        self._view: CommittedView | None = None
        self._read: list[CommittedView] = []
        self._closed = ""
        self.rest: Callable[[float], None] = _continue
        self.listeners = set[Callable[[], None]]()

    def __contains__(self, store: str) -> bool:
        return store in self._builders

    def note(self, position: Mapping[TopicPartition, int]) -> None:
        """Set the position of the present rows, from which a task continues."""
        with self.changing(position):
            pass

    @contextmanager
    def changing(self, position: Mapping[TopicPartition, int] | None = None) -> Iterator[None]:
        """Write rows within the block, and set their position (None: unchanged); until then, the old view is read."""
        with self._writing:
            try:
                yield
            except BaseException:
                self._closed = "the last commit could not be written: ask again when the stores are opened anew"
                raise
            self._position = self._position if position is None else dict(position)
            with self._lending:
                self._retire()
        self._notify_listeners()

    def acquire(self) -> CommittedView:
        """Return the view of the last commit. The caller ends reading by `give_back`.

        Raises
        ------
        StoreNotAvailableError
            If the stores are closed.
        """
        with self._lending:
            if self._view is not None:
                return self._lend(self._view)
        with self._writing, self._lending:
            return self._lend(self._current())

    def acquire_nowait(self) -> CommittedView | None:
        """Return the result of `acquire`, or None while a commit is written."""
        with self._lending:
            if self._view is not None:
                return self._lend(self._view)
        if not self._writing.acquire(blocking=False):
            return None
        try:
            with self._lending:
                return self._lend(self._current())
        finally:
            self._writing.release()

    def _current(self) -> CommittedView:
        if self._closed:
            raise StoreNotAvailableError(self._closed)
        if self._view is None:
            families = {name: family.view(self._let_work) for name, family in self._families.items()}
            self._view = CommittedView(families, self._builders, self._position)
        return self._view

    def give_back(self, view: CommittedView) -> None:
        """End reading a view."""
        with self._lending:
            view.readers -= 1
            if not view.readers:
                self._read.remove(view)
                if view is not self._view:
                    view.release()

    @contextmanager
    def reading(self) -> Iterator[CommittedView]:
        """Read the view of the last commit within the block."""
        view = self.acquire()
        try:
            yield view
        finally:
            self.give_back(view)

    def close(self) -> None:
        """Close all views, so that further reads raise StoreNotAvailableError."""
        with self._writing, self._lending:
            self._closed = self._closed or _MOVED
            self._retire()
            for view in self._read:
                view.release()
        self._notify_listeners()

    def _notify_listeners(self) -> None:
        for listener in tuple(self.listeners):
            listener()

    def _lend(self, view: CommittedView) -> CommittedView:
        if not view.readers:
            self._read.append(view)
        view.readers += 1
        return view

    def _retire(self) -> None:
        view, self._view = self._view, None
        if view is not None and not view.readers:
            view.release()

    def _let_work(self, seconds: float) -> None:
        self.rest(seconds)


def _continue(seconds: float) -> None:
    """Do not pause: no task works."""
