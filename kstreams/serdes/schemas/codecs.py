"""`Reader` and `Writer`: what a format makes of one schema, once, for all records that have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Reader(NamedTuple):
    """Reads what was written with one schema; bytes are given with the frame in front.

    Parameters
    ----------
    one : callable
        `bytes -> value`; raises SerdeError when the bytes do not decode, or not to their last one.
    many : callable
        `list of bytes -> list of values`, in the same order; raises SerdeError when one of them does not decode.
    """

    one: Callable[[bytes], Any]
    many: Callable[[list[bytes]], list[Any]]

    @classmethod
    def of(cls, one: Callable[[bytes], Any]) -> Reader:
        """A reader that reads one after the other."""
        return cls(one, lambda rows: [one(row) for row in rows])


class Writer(NamedTuple):
    """Writes with one schema, the frame in front.

    Parameters
    ----------
    one : callable
        `value -> bytes`; raises SerdeError for a value that would not be read back.
    many : callable
        `list of values -> list of bytes`, in the same order.
    """

    one: Callable[[Any], bytes]
    many: Callable[[list[Any]], list[bytes]]

    @classmethod
    def of(cls, one: Callable[[Any], bytes]) -> Writer:
        """A writer that writes one after the other."""
        return cls(one, lambda values: [one(value) for value in values])
