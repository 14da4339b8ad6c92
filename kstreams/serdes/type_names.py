"""Serdes by name: how the settings of a topic say what the bytes of its keys and values are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde
from kstreams.serdes.change import ChangeSerde
from kstreams.serdes.json import JsonSerde
from kstreams.serdes.msgpack import MsgpackSerde
from kstreams.serdes.scalars import (
    BoolSerde,
    BytesSerde,
    DatetimeSerde,
    FloatSerde,
    IntSerde,
    StringSerde,
    UuidSerde,
)
from kstreams.serdes.subscriptions import ResponseSerde, SubscriptionSerde
from kstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde, WindowRowSerde

_MOST_DEEP = 8
_PARTS = re.compile(r"\s*([a-z-]+|\d+|[(),])\s*")


class _Form(NamedTuple):
    """How the serdes of one class are named, and made from what stands in the brackets of a name."""

    name: str
    make: Callable[..., Serde[Any]]
    arguments: Callable[[Any], tuple[Any, ...]] = lambda serde: ()
    wants: tuple[type, ...] = ()


_FORMS: dict[type[Serde[Any]], _Form] = {
    StringSerde: _Form("str", StringSerde),
    IntSerde: _Form("int", IntSerde),
    FloatSerde: _Form("float", FloatSerde),
    BoolSerde: _Form("bool", BoolSerde),
    BytesSerde: _Form("bytes", BytesSerde),
    DatetimeSerde: _Form("datetime", DatetimeSerde),
    UuidSerde: _Form("uuid", UuidSerde),
    JsonSerde: _Form("json", lambda: JsonSerde(Any)),
    MsgpackSerde: _Form("msgpack", lambda: MsgpackSerde(Any)),
    TimeWindowedSerde: _Form("windowed", TimeWindowedSerde, lambda s: (s.inner, s.size_ms), (Serde, int)),
    SessionWindowedSerde: _Form("session", SessionWindowedSerde, lambda s: (s.inner,), (Serde,)),
    WindowRowSerde: _Form("window-row", WindowRowSerde, lambda s: (s.inner, s.size_ms), (Serde, int)),
    ChangeSerde: _Form("change", ChangeSerde, lambda s: (s.inner,), (Serde,)),
    SubscriptionSerde: _Form("subscription", SubscriptionSerde, lambda s: (s.primary_key,), (Serde,)),
    ResponseSerde: _Form("response", ResponseSerde, lambda s: (s.value,), (Serde,)),
}
_BY_NAME = {form.name: form for form in _FORMS.values()}


def type_name(serde: Serde[Any] | None) -> str | None:
    """The name of a serde; None for one of the user's own making, whose bytes nobody else can read.

    Parameters
    ----------
    serde : Serde or None

    Examples
    --------
    >>> type_name(IntSerde()), type_name(TimeWindowedSerde(StringSerde(), 60_000)), type_name(JsonSerde(dict[str, int]))
    ('int', 'windowed(str, 60000)', 'json')
    """
    form = _FORMS.get(type(serde))  # type: ignore[arg-type]  # a subclass may write other bytes
    if form is None:
        return None
    parts = [type_name(part) if isinstance(part, Serde) else str(part) for part in form.arguments(serde)]
    if None in parts:
        return None
    return f"{form.name}({', '.join(map(str, parts))})" if parts else form.name


def serde_named(name: str) -> Serde[Any]:
    """The serde of a name.

    Parameters
    ----------
    name : str
        `str`, `int`, `float`, `bool`, `bytes`, `datetime`, `uuid`, `json`, `msgpack`; of windowed keys
        `windowed(KEY, SIZE_MS)` and `session(KEY)`; of internal topics `window-row(KEY, SIZE_MS)`, `change(VALUE)`,
        `subscription(KEY)`, `response(VALUE)`.

    Raises
    ------
    SerdeError
        When no serde has this name.

    Examples
    --------
    >>> serde_named("session(str)").deserialize(b"a" + bytes(16))
    Windowed(key='a', window=Window(start_ms=0, end_ms=0))
    """
    parts = _PARTS.findall(name)
    tokens = iter([*parts, ""])
    try:
        if "".join(parts) != "".join(name.split()):
            raise ValueError
        serde = _read(next(tokens), tokens, _MOST_DEEP)
        if next(tokens):
            raise ValueError
    except (ValueError, StopIteration):
        raise SerdeError(f"{name!r} names no type; there are {', '.join(map(_pattern, _BY_NAME))}") from None
    return serde


def _pattern(name: str) -> str:
    """`windowed(TYPE, SIZE_MS)`."""
    words = ["TYPE" if kind is Serde else "SIZE_MS" for kind in _BY_NAME[name].wants]
    return f"{name}({', '.join(words)})" if words else name


def _read(name: str, tokens: Iterator[str], deep: int) -> Serde[Any]:
    """The serde that begins with this name; raises ValueError where the text is not of the form."""
    if name not in _BY_NAME or not deep:
        raise ValueError(name)
    form = _BY_NAME[name]
    given: list[Any] = []
    for number, kind in enumerate(form.wants):
        _expect("," if number else "(", tokens)
        given.append(int(next(tokens)) if kind is int else _read(next(tokens), tokens, deep - 1))
    if form.wants:
        _expect(")", tokens)
    return form.make(*given)


def _expect(sign: str, tokens: Iterator[str]) -> None:
    if next(tokens) != sign:
        raise ValueError(sign)
