"""`CommittedViews`: the stores of a task as of its last commit, for any thread to read without asking the task.

RocksDB holds only what is committed. So a view is made when somebody asks, and costs a task nothing that nobody asks.
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
    """Bytes that stay as they are until they are released."""

    def release(self) -> None:
        """Let go of the files; further reads raise StoreNotAvailableError."""
        ...


class ViewableFamily(Protocol):
    """A family whose bytes can be seen as they are at a moment."""

    def view(self, pause: Callable[[float], None]) -> FrozenFamily:
        """The bytes now; `pause` is called between parts of a scan, with the seconds of CPU time of a part."""
        ...


class CommittedView:
    """The stores of a task as of one commit.

    Parameters
    ----------
    families : mapping of str to FrozenFamily
        The bytes, by store.
    builders : mapping of str to StoreBuilder
    position : mapping of TopicPartition to int
        For each input the last offset whose record took part.
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
        """A store, with the reading methods of its kind; they may be called by several threads."""
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
        """Let go of the files."""
        for family in self._families.values():
            family.release()


class CommittedViews:
    """The committed views of one task: one at a time, and those that are still read.

    Parameters
    ----------
    builders : sequence of StoreBuilder
        The stores that have such views.
    families : mapping of str to ViewableFamily
        Their bytes.

    Attributes
    ----------
    rest : callable
        Called between parts of a scan with the seconds of CPU time of a part: the place to let the task work.
    listeners : set of callable
        The writing thread calls them after each change, and when the stores close.
    """

    def __init__(self, builders: Sequence[StoreBuilder], families: Mapping[str, ViewableFamily]) -> None:
        self._builders = {builder.name: builder for builder in builders}
        self._families = families
        self._position: Mapping[TopicPartition, int] = {}
        self._bytes = threading.Lock()  # held while bytes are written, or are made a view of
        self._known = threading.Lock()  # held for a moment: who reads which view
        self._view: CommittedView | None = None
        self._read: list[CommittedView] = []
        self._closed = ""
        self.rest: Callable[[float], None] = _go_on
        self.listeners = set[Callable[[], None]]()

    def __contains__(self, store: str) -> bool:
        return store in self._builders

    def note(self, position: Mapping[TopicPartition, int]) -> None:
        """What is there stands for this position: a task goes on from it."""
        with self.changing(position):
            pass

    @contextmanager
    def changing(self, position: Mapping[TopicPartition, int] | None = None) -> Iterator[None]:
        """Write bytes inside; they stand for `position` then (None: as before). Until the end the old view is read."""
        with self._bytes:
            try:
                yield
            except BaseException:
                self._closed = "the last commit could not be written: ask again when the stores are opened anew"
                raise
            self._position = self._position if position is None else dict(position)
            with self._known:
                self._retire()
        self._notify_listeners()

    def acquire(self) -> CommittedView:
        """The view of the last commit, to be given back by `give_back`.

        Raises
        ------
        StoreNotAvailableError
            When the stores are closed.
        """
        with self._known:
            if self._view is not None:
                return self._lend(self._view)
        with self._bytes, self._known:
            return self._lend(self._made())

    def acquire_nowait(self) -> CommittedView | None:
        """As `acquire`; None while a commit is being written."""
        with self._known:
            if self._view is not None:
                return self._lend(self._view)
        if not self._bytes.acquire(blocking=False):
            return None
        try:
            with self._known:
                return self._lend(self._made())
        finally:
            self._bytes.release()

    def _made(self) -> CommittedView:
        if self._closed:
            raise StoreNotAvailableError(self._closed)
        if self._view is None:
            families = {name: family.view(self._let_work) for name, family in self._families.items()}
            self._view = CommittedView(families, self._builders, self._position)
        return self._view

    def give_back(self, view: CommittedView) -> None:
        """Read no more from a view."""
        with self._known:
            view.readers -= 1
            if not view.readers:
                self._read.remove(view)
                if view is not self._view:
                    view.release()

    @contextmanager
    def reading(self) -> Iterator[CommittedView]:
        """Read from the view of the last commit inside."""
        view = self.acquire()
        try:
            yield view
        finally:
            self.give_back(view)

    def close(self) -> None:
        """Refuse to read on, also from views that are lent."""
        with self._bytes, self._known:
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


def _go_on(seconds: float) -> None:
    """Nobody else works."""
