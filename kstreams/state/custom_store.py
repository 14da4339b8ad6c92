"""`CustomStore`: a store of the user's own making, which writes down what must not be lost."""

from __future__ import annotations

from typing import Protocol


class CustomStore(Protocol):
    """A store of the user's own making: any object that can take back what it logged.

    It gets its log when it is made: a function that takes a key, a value (None: deleted) and, if it likes, a timestamp
    in ms. What it logs goes to its changelog, the last record per key and commit. A `close` is called, if it has one.
    """

    def restore(self, key: bytes, value: bytes | None, timestamp: int) -> None:
        """Take back a record that was logged; called before anything else, in the order of the changelog."""
        ...
