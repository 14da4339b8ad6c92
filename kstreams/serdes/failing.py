"""Which of many rows do not encode or decode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kstreams.errors import RegistryError


def failing_rows(convert: Callable[[Any], Any], rows: Any, first: int = 0) -> Iterator[tuple[int, Exception]]:
    """The places of the rows that fail by themselves, and why; found by halves, since mostly they are few.

    Parameters
    ----------
    convert : callable
        `decode_rows` or `encode_rows` of a serde.
    rows : sequence or pyarrow array
    first : int
        The place of the first one.

    Examples
    --------
    >>> [(row, str(error)) for row, error in failing_rows(lambda rows: [1 // row for row in rows], [1, 0, 2, 0])]
    [(1, 'integer division or modulo by zero'), (3, 'integer division or modulo by zero')]
    """
    try:
        convert(rows)
    except RegistryError:
        raise  # says nothing about a row
    except Exception as cause:
        half = len(rows) // 2
        if not half:
            yield first, cause
            return
        yield from failing_rows(convert, rows[:half], first)
        yield from failing_rows(convert, rows[half:], first + half)
