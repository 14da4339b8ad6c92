"""Which classes within a type msgspec knows nothing of: it would neither write nor read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from kstreams.decoders import type_info

_READ = (dict, list, str, int, float, bool)
"""What JSON is read as: classes of these, and those that include them, are data."""


def plain_classes(kind: Any) -> frozenset[type]:
    """The classes within a type that are no data to msgspec.

    Examples
    --------
    >>> class Order: ...
    >>> sorted(found.__name__ for found in plain_classes(dict[str, list[Order]]))
    ['Order']
    """
    custom = {info.cls for info in _within(type_info(kind)) if isinstance(info, inspect.CustomType)}
    return frozenset(found for found in custom if not _is_data(found))


def _is_data(kind: type) -> bool:
    return issubclass(kind, _READ) or any(issubclass(read, kind) for read in _READ)


def _within(info: Any) -> Iterator[Any]:
    """What a type is made of, each part once: types may hold themselves."""
    seen = set()
    waiting = [info]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or not isinstance(part, inspect.Type | inspect.Field | tuple):
            continue
        seen.add(id(part))
        yield part
        waiting.extend(part if isinstance(part, tuple) else msgspec.structs.astuple(part))
