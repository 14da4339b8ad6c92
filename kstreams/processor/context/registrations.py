"""`Registrations`: the callbacks and objects that the operators of a task registered when they were bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kstreams.processor.context.column_handle import ColumnHandles
from kstreams.processor.context.delayed_results import DelayedResults

S = TypeVar("S")


class Registrations:
    """The callbacks, metadata and shared objects of the operators of one task.

    Parameters
    ----------
    metadata : mapping of str to int
        The task metadata of the last commit.

    Attributes
    ----------
    at_flush, at_end_of_input, at_idle, at_close : list of (str, callable)
        Callbacks with the name of their operator, children before parents.
    held_back : dict of str to DelayedResults
        The records that operators hold back, by operator, children before parents.
    column_handles : ColumnHandles
    follows_stream_time : bool
        True if a processor may schedule punctuators of stream time, which are called between two records.
    """

    __slots__ = (
        "_bytes",
        "_metadata",
        "_read",
        "_shared",
        "at_close",
        "at_end_of_input",
        "at_flush",
        "at_idle",
        "column_handles",
        "follows_stream_time",
        "held_back",
    )

    def __init__(self, metadata: Mapping[str, int]) -> None:
        self._metadata = metadata
        self._read: dict[str, Callable[[], int]] = {}
        self._bytes: list[Callable[[], int]] = []
        self._shared: dict[str, Any] = {}
        self.column_handles = ColumnHandles()
        self.follows_stream_time = False
        self.held_back: dict[str, DelayedResults[object]] = {}
        self.at_flush: list[tuple[str, Callable[[], None]]] = []
        self.at_end_of_input: list[tuple[str, Callable[[], None]]] = []
        self.at_idle: list[tuple[str, Callable[[int], bool]]] = []
        self.at_close: list[tuple[str, Callable[[], None]]] = []

    def follow_stream_time(self) -> None:
        """Declare that a processor may schedule punctuators of stream time."""
        self.follows_stream_time = True

    def hold_back(self, node: str, held_back: DelayedResults[Any]) -> None:
        """Register the held-back records of an operator."""
        self.held_back[node] = held_back

    def shared(self, name: str, make: Callable[[], S]) -> S:
        """Return an object that operators of one task share; the first call creates it."""
        if name not in self._shared:
            self._shared[name] = make()
        instance: S = self._shared[name]
        return instance

    def keep_in_metadata(self, key: str, read: Callable[[], int]) -> int:
        """Store a number in the task metadata; return its value at the last commit, -1 at first."""
        self._read[key] = read
        return self._metadata.get(key, -1)

    def metadata(self) -> dict[str, int]:
        """Return the present numbers of the operators for the task metadata."""
        return {key: read() for key, read in self._read.items()}

    def count_bytes(self, num_bytes: Callable[[], int]) -> None:
        """Register a function that returns the bytes an operator holds until the next commit."""
        self._bytes.append(num_bytes)

    def num_bytes(self) -> int:
        """Return the approximate memory of operators until the next commit."""
        return sum([num_bytes() for num_bytes in self._bytes])
