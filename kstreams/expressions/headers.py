"""Headers in expressions: reading the last header of a name, and converting values to headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.record import Headers, last_header

HeaderValue: TypeAlias = "str | bytes | bool | int | float | None"
"""The types of a header value; text and numbers are written as UTF-8 text."""

_INTEGER = re.compile(rb"[+-]?[0-9]{1,19}")
_TRUTH = {b"true": True, b"false": False}


def _text(raw: bytes) -> str:
    return raw.decode()


def _integer(raw: bytes) -> int | None:
    if not _INTEGER.fullmatch(raw):
        return None
    number = int(raw)
    return number if -(2**63) <= number < 2**63 else None


def _fraction(raw: bytes) -> float | None:
    return None if b"_" in raw else float(raw)


def _truth(raw: bytes) -> bool | None:
    return _TRUTH.get(raw.lower())


READERS: dict[type, Callable[[bytes], Any]] = {
    str: _text,
    bytes: bytes,
    int: _integer,
    float: _fraction,
    bool: _truth,
}
"""The function that reads the bytes of a header as a type. For bytes that do not fit, it raises ValueError or returns
None."""


@dataclass(frozen=True, slots=True)
class HeaderRead:
    """Reads the last header of a name: null if there is none, or if it is not of the type.

    Parameters
    ----------
    name : str
    kind : type or Serde
        A type of `READERS`, or an object with `deserialize`.

    Examples
    --------
    >>> read = HeaderRead("retries", int)
    >>> read([("retries", b"1"), ("retries", b"2")]), read([]), read([("retries", b"many")])
    (2, None, None)
    """

    name: str
    kind: Any

    @classmethod
    def of(cls, name: str, kind: Any) -> HeaderRead:
        """Return the reader of `ks.header(name, type=kind)`; raise TypeError for a wrong name or type."""
        if not isinstance(name, str):
            raise TypeError(f"ks.header takes the name of a header, not {name!r}")
        if not (kind in READERS if isinstance(kind, type) else hasattr(kind, "deserialize")):
            kind_name = kind.__name__ if isinstance(kind, type) else repr(kind)
            raise TypeError(f"ks.header({name!r}) takes type=str, bytes, int, float, bool or a serde, not {kind_name}")
        return cls(name, kind)

    @property
    def result(self) -> Any:
        """The Python type of the values; None if a serde does not declare one."""
        return self.kind if isinstance(self.kind, type) else self.kind.type

    def __call__(self, headers: Headers) -> Any:
        raw = last_header(headers, self.name)
        return None if raw is None else self.read(raw)

    def read(self, raw: bytes) -> Any:
        """Return the value of a header; None if it is not of the type."""
        read = READERS[self.kind] if isinstance(self.kind, type) else self.kind.deserialize
        try:
            return read(raw)
        except Exception:  # an expression never fails: bytes of another type are null, like a cast that does not fit
            return None

    def __str__(self) -> str:
        """Return the arguments of `ks.header` as source code."""
        if self.kind is str:
            return repr(self.name)
        return f"{self.name!r}, type={getattr(self.kind, '__name__', self.kind)}"


def header_bytes(value: HeaderValue) -> bytes | None:
    """Convert a value to the bytes of a header; raise TypeError for a value of another type.

    Examples
    --------
    >>> header_bytes("ä"), header_bytes(3), header_bytes(True), header_bytes(None)
    (b'\\xc3\\xa4', b'3', b'true', None)
    """
    write = _WRITERS.get(type(value))
    if write is None:
        raise TypeError(
            f"a header holds text, bytes, an int, a float, a bool or None, not {value!r}: turn it into one of these"
        )
    written: bytes | None = write(value)
    return written


_WRITERS: dict[type, Callable[[Any], bytes | None]] = {
    type(None): lambda value: None,
    bytes: bytes,
    str: str.encode,
    bool: lambda value: b"true" if value else b"false",
    int: lambda value: str(value).encode(),
    float: lambda value: repr(value).encode(),
}
