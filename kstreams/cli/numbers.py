"""Numbers with what they count, for people: `counted`, `size`."""

from __future__ import annotations

from math import log


def counted(number: int, noun: str) -> str:
    """A number and a noun, in the plural but for one.

    Examples
    --------
    >>> counted(1, "record"), counted(2_000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """So many bytes.

    Examples
    --------
    >>> size(0), size(2_500), size(5 * 1024**3)
    ('0 B', '2.4 KiB', '5.0 GiB')
    """
    if number < 1024:
        return f"{number:.0f} B"
    power = min(int(log(number, 1024)), 3)
    return f"{number / 1024**power:,.1f} {('KiB', 'MiB', 'GiB')[power - 1]}"
