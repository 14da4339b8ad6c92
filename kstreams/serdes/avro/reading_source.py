"""`ReadingSource`: the text of a function that reads bytes; `d` are the bytes and `p` is the place in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from kstreams.serdes.avro.source import Source
from kstreams.serdes.avro.wire import (
    DOUBLE,
    FLOAT,
    MOST_EMPTY_ITEMS,
    DamagedError,
    UnresolvedError,
    more,
    more_of_int,
    more_of_length,
)


def _damaged(reason: str) -> NoReturn:
    raise DamagedError(reason)


def _unresolved(reason: str) -> NoReturn:
    raise UnresolvedError(reason)


class ReadingSource(Source):
    """Lines that read numbers, lengths, bytes, and the items of collections."""

    def __init__(self) -> None:
        super().__init__(
            more=more,
            more_of_int=more_of_int,
            more_of_length=more_of_length,
            float_at=FLOAT.unpack_from,
            double_at=DOUBLE.unpack_from,
            new=object.__new__,
            damaged=_damaged,
            unresolved=_unresolved,
        )

    def number(self, *, is_int: bool = False) -> str:
        """Write what reads a number; the variable that holds it."""
        value, rest = self.variable(), "more_of_int" if is_int else "more"
        self.add(f"{value} = d[p]", "p += 1")
        with self.block(f"if {value} > 127"):  # two bytes without a call, since that takes longer than the rest
            self.add(f"if d[p] < 128: {value} = {value} & 127 | d[p] << 7; p += 1")
            self.add(f"else: {value}, p = {rest}(d, p, {value})")
        self.add(f"{value} = ({value} >> 1) ^ -({value} & 1)")
        return value

    def pass_number(self) -> None:
        """Write what moves past a number."""
        begin = self.variable()
        self.add(f"{begin} = p + 10", "while d[p] > 127: p += 1", "p += 1")
        self.add(f"if p > {begin}: damaged('a number has more than ten bytes')")

    def length(self) -> str:
        """Write what reads a length; the variable with the place where what has that length ends."""
        end = self.variable()
        self.add(
            f"{end} = d[p]",
            "p += 1",
            f"if {end} > 127: {end}, p = more_of_length(d, p, {end})",
            f"elif {end} & 1: damaged('a length is negative')",
            f"else: {end} >>= 1",
            f"{end} += p",
        )
        return end

    def slice(self) -> str:
        """Write what takes bytes behind their length; the variable that holds them."""
        value, end = self.variable(), self.length()
        self.add(f"{value} = d[p:{end}]", f"p = {end}")
        return value

    def fixed(self, size: int) -> str:
        """Write what takes so many bytes; the variable that holds them."""
        value = self.variable()
        self.add(f"{value} = d[p:p + {size}]", f"p += {size}")
        self.add("if p > len(d): damaged('the bytes end too early')")
        return value

    def check_branch(self, number: str) -> None:
        """Write the end of the branches of a union: there is no other."""
        with self.block("else"):
            self.add(f"damaged(f'there is no branch {{{number}}} in its union')")

    @contextmanager
    def items(self, collection: str = "", *, take_no_bytes: bool = False) -> Iterator[None]:
        """What is added meanwhile reads one item of an array or map, which come in blocks.

        Parameters
        ----------
        collection : str
            The variable that holds the items.
        take_no_bytes : bool
            Whether a few bytes could claim any number of items.
        """
        with self.block("while True"):
            count = self.number()
            self.add(f"if {count} == 0: break")
            with self.block(f"if {count} < 0"):
                self.add(f"{count} = -{count}")
                self.pass_number()  # the length of the block in bytes
            if take_no_bytes:
                self.add(
                    f"if {count} + len({collection}) > {MOST_EMPTY_ITEMS}: damaged('too many items without bytes')"
                )
            with self.block(f"for _ in range({count})"):
                yield
