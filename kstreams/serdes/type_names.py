"""Names of serdes. The configuration of a topic holds those of its keys and values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde
from kstreams.serdes.registry import SerdeKind, kind_named, named_kinds, serde_kind

_MAX_DEPTH = 8
_TOKEN = re.compile(r"\s*([a-z][a-z0-9.-]*|\d+|[(),])\s*")


def type_name(serde: Serde | None) -> str | None:
    """Return the name of a serde. None for an unregistered serde, whose bytes no other program can read.

    Parameters
    ----------
    serde : Serde or None

    Examples
    --------
    >>> from kstreams.serdes import IntSerde, JsonSerde, StringSerde, TimeWindowedSerde
    >>> type_name(IntSerde()), type_name(TimeWindowedSerde(StringSerde(), 60_000)), type_name(JsonSerde(dict[str, int]))
    ('int', 'windowed(str, 60000)', 'json')
    """
    kind = None if serde is None else serde_kind(serde)
    if kind is None or kind.name is None:
        return None
    parts = [type_name(part) if isinstance(part, Serde) else str(part) for part in kind.arguments(serde)]
    if None in parts:
        return None
    return f"{kind.name}({', '.join(map(str, parts))})" if parts else kind.name


def serde_named(name: str) -> Serde:
    """Return the serde with a name.

    Parameters
    ----------
    name : str
        `str`, `int`, `float`, `bool`, `bytes`, `datetime`, `uuid`, `json`, `msgpack`, `avro`, `protobuf`,
        `json-schema`, or the name of a registered serde. Windowed keys: `windowed(KEY, SIZE_MS)`, `session(KEY)`.
        Internal topics: `window-row(KEY, SIZE_MS)`, `change(VALUE)`, `subscription(KEY)`, `response(VALUE)`.

    Raises
    ------
    SerdeError
        If no serde has this name.

    Examples
    --------
    >>> serde_named("session(str)").deserialize(b"a" + bytes(16))
    Windowed(key='a', window=Window(start_ms=0, end_ms=0))
    """
    parts = _TOKEN.findall(name)
    tokens = iter([*parts, ""])
    try:
        if "".join(parts) != "".join(name.split()):
            raise ValueError
        serde = _parse(next(tokens), tokens, _MAX_DEPTH)
        if next(tokens):
            raise ValueError
    except (ValueError, StopIteration):
        raise SerdeError(f"{name!r} names no type; there are {', '.join(map(_pattern, named_kinds()))}") from None
    return serde


def _pattern(kind: SerdeKind) -> str:
    """Return the name of a kind with its parameters, as in `windowed(TYPE, SIZE_MS)`."""
    words = ["TYPE" if parameter is Serde else "SIZE_MS" for parameter in kind.parameters]
    return f"{kind.name}({', '.join(words)})" if words else str(kind.name)


def _parse(name: str, tokens: Iterator[str], remaining_depth: int) -> Serde:
    """Parse a serde and its arguments. Raises ValueError if the text does not have the form of a name."""
    kind = kind_named(name)
    if kind is None or not remaining_depth:
        raise ValueError(name)
    arguments: list[Any] = []
    for number, parameter in enumerate(kind.parameters):
        _expect("," if number else "(", tokens)
        arguments.append(int(next(tokens)) if parameter is int else _parse(next(tokens), tokens, remaining_depth - 1))
    if kind.parameters:
        _expect(")", tokens)
    return kind.create(arguments)


def _expect(sign: str, tokens: Iterator[str]) -> None:
    if next(tokens) != sign:
        raise ValueError(sign)
