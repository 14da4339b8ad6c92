"""`SourceLine`: the line of the user's code that declared an operator, and the method that it called."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_GENERATED = re.compile(r"[A-Z-]+-[0-9]{10}")
_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep


class SourceLine(str):
    """`file:line` of the user's code, and the method of kstreams that the line calls.

    Parameters
    ----------
    place : str
    method : str, optional
        None if the line calls no method of kstreams.
    """

    __slots__ = ("method",)

    method: str | None

    def __new__(cls, place: str, method: str | None = None) -> SourceLine:
        line = super().__new__(cls, place)
        line.method = method
        return line

    def __reduce__(self) -> tuple[type[SourceLine], tuple[str, str | None]]:
        return SourceLine, (str(self), self.method)


_place_in_file: ContextVar[str] = ContextVar("place_in_file", default="")
"""The line of a file that is not Python, by which operators are declared now."""


@contextmanager
def declared_by(place: str) -> Iterator[None]:
    """Let `declared_at` return a line of a file that is not Python."""
    token = _place_in_file.set(place)
    try:
        yield
    finally:
        _place_in_file.reset(token)


def declared_at() -> SourceLine:
    """Return the line of the innermost frame outside of kstreams. Files below the working folder are relative to it."""
    place = _place_in_file.get()
    if place:
        return SourceLine(place)
    frame = sys._getframe(1)
    method = None
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        method = frame.f_code.co_name
        frame = frame.f_back
    file = frame.f_code.co_filename
    working_folder = os.getcwd() + os.sep
    return SourceLine(f"{file.removeprefix(working_folder)}:{frame.f_lineno}", method)


def operator_at(name: str, line: str | None) -> str:
    """Return the name of an operator in errors. It begins with what the user wrote: the name, or the method.

    Examples
    --------
    >>> operator_at("long-words", SourceLine("app.py:12", "filter"))
    'long-words (filter() at app.py:12)'
    >>> operator_at("KSTREAM-FILTER-0000000001", SourceLine("app.py:12", "filter"))
    'filter() at app.py:12 (KSTREAM-FILTER-0000000001)'
    >>> operator_at("KSTREAM-FILTER-0000000001", "app.py:12")
    'KSTREAM-FILTER-0000000001 (declared at app.py:12)'
    """
    if not line:
        return name
    method = line.method if isinstance(line, SourceLine) else None
    if method is None:
        return f"{name} (declared at {line})"
    return f"{method}() at {line} ({name})" if _GENERATED.fullmatch(name) else f"{name} ({method}() at {line})"


def brief_operator(name: str, line: str | None) -> str:
    """Return what the user wrote of an operator, with the file and the line: for titles.

    Examples
    --------
    >>> brief_operator("long-words", SourceLine("shop/app.py:12", "filter"))
    'long-words app.py:12'
    >>> brief_operator("KSTREAM-FILTER-0000000001", SourceLine("shop/app.py:12", "filter"))
    'filter() app.py:12'
    >>> brief_operator("KSTREAM-FILTER-0000000001", None)
    'KSTREAM-FILTER-0000000001'
    """
    if not line:
        return name
    method = line.method if isinstance(line, SourceLine) else None
    title = f"{method}()" if method is not None and _GENERATED.fullmatch(name) else name
    return f"{title} {line.rpartition(os.sep)[2]}"


_NAMED = re.compile(r"(\w+)\(\) at (\S+) \((.+)\)|(.+) \((?:(\w+)\(\)|declared) at (\S+)\)")


def operator_in(text: str) -> tuple[str, str | None]:
    """Return the name and the line from the text of `operator_at`.

    Examples
    --------
    >>> operator_in("long-words (filter() at app.py:12)")
    ('long-words', 'app.py:12')
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        return text, None
    method, line, generated, name, other_method, other_line = match.groups()
    return generated or name, SourceLine(line or other_line, method or other_method)
