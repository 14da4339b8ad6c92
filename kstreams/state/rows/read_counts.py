"""`ReadCounts`: how often a store was asked for rows of a key, and how often it had to read RocksDB for them."""

from __future__ import annotations


class ReadCounts:
    """Counted by the thread that owns the store.

    Attributes
    ----------
    look_ups : int
        Questions of operators; they are counted on request (see `MeasuredStore`).
    misses : int
        Those that live values could not answer.

    Examples
    --------
    >>> reads = ReadCounts()
    >>> reads.look_ups, reads.misses = 4, 1
    >>> reads.hits_since(ReadCounts())
    (4, 3)
    """

    __slots__ = ("look_ups", "misses")

    def __init__(self, look_ups: int = 0, misses: int = 0) -> None:
        self.look_ups = look_ups
        self.misses = misses

    def copy(self) -> ReadCounts:
        """As they are now."""
        return ReadCounts(self.look_ups, self.misses)

    def hits_since(self, before: ReadCounts) -> tuple[int, int]:
        """Look-ups since then, and how many of them live values have answered."""
        look_ups = self.look_ups - before.look_ups
        return look_ups, max(0, look_ups - (self.misses - before.misses))
