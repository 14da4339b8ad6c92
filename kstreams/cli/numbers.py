"""`counted`: a number with what it counts."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """A number and a noun, in the plural but for one.

    Examples
    --------
    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
