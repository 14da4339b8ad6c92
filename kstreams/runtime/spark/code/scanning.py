"""Positions in the text of an expression that lie outside of parentheses and quotes, and lines of bounded width."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

_OPENING = "([{"
_CLOSING = ")]}"
_INDENT = "    "


def top_level(text: str) -> Iterator[int]:
    """Yield the positions outside of all brackets and quotes; brackets at the top level are among them.

    Examples
    --------
    >>> [position for position in top_level("a(b)")]
    [0, 1, 3]
    """
    depth = 0
    quote = ""
    is_escaped = False
    for position, character in enumerate(text):
        if quote:
            is_end = character == quote and not is_escaped
            is_escaped = character == "\\" and not is_escaped
            quote = "" if is_end else quote
            continue
        depth -= character in _CLOSING
        if depth == 0:
            yield position
        quote = character if character in "\"'" else ""
        depth += character in _OPENING


def without_parentheses(text: str) -> str:
    """Return a text without the parentheses around the whole of it.

    Examples
    --------
    >>> without_parentheses("(a + b)"), without_parentheses("(a) + (b)")
    ('a + b', '(a) + (b)')
    """
    is_enclosed = text.startswith("(") and list(top_level(text)) == [0, len(text) - 1]
    return text[1:-1] if is_enclosed else text


def has_operator(text: str) -> bool:
    """Return True if an operator stands outside of all brackets and quotes.

    Examples
    --------
    >>> has_operator('F.col("a") > 1'), has_operator('F.lit("a > 1")'), has_operator('~F.col("a")')
    (True, False, True)
    """
    return text.startswith(("~", "-")) or any(text[position] == " " for position in top_level(text))


def separated(text: str, separators: tuple[str, ...]) -> list[str]:
    """Split a text before each separator at the top level; each part but the first begins with its separator.

    Examples
    --------
    >>> separated("f(a, b), c", (", ",))
    ['f(a, b)', ', c']
    """
    cuts = [at for at in top_level(text) if text.startswith(separators, at)]
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def lines_of(text: str, width: int) -> list[str]:
    """Return an expression as lines: what is too wide is broken at the arguments of its longest call.

    Examples
    --------
    >>> print("\\n".join(lines_of('F.struct(F.col("one"), F.col("two")).alias("both")', 30)))
    F.struct(
        F.col("one"),
        F.col("two"),
    ).alias("both")
    """
    group = _longest_group(text)
    if len(text) <= width or group is None:
        return [text]
    opening, closing = group
    inner = text[opening + 1 : closing]
    arguments = [part.removeprefix(", ") for part in separated(inner, (", ",))]
    if len(arguments) > 1:
        parts = [f"{argument}," for argument in arguments]
    else:
        parts = [part.strip() for part in separated(inner, (" & ", " | "))]
    broken = [f"{_INDENT}{line}" for part in parts for line in lines_of(part, width - len(_INDENT))]
    return [text[: opening + 1], *broken, text[closing:]]


def _longest_group(text: str) -> tuple[int, int] | None:
    """Return the positions of the brackets at the top level that enclose most; None if there are none."""
    positions = list(top_level(text))
    pairs = [
        (start, end)
        for start, end in pairwise(positions)
        if text[start] in _OPENING and text[end] in _CLOSING and end > start + 1
    ]
    return max(pairs, key=lambda pair: pair[1] - pair[0], default=None)
