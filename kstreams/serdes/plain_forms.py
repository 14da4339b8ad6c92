"""The plain forms of keys and values: what JSON can hold, and text as a person types it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from kstreams.decoders import convert, decode_json
from kstreams.errors import SerdeError
from kstreams.record import Change, Window, Windowed
from kstreams.serdes import (
    BytesSerde,
    ChangeSerde,
    Serde,
    SessionWindowedSerde,
    StringSerde,
    TimeWindowedSerde,
    WindowRowSerde,
    type_name,
)
from kstreams.serdes.non_finite import with_texts


def shown(value: Any) -> Any:
    """A value as JSON can hold it, with names for the parts of a tuple that has them.

    Examples
    --------
    >>> shown(Windowed("EWR", Window(0, 60))), shown([float("nan")])
    ({'key': 'EWR', 'window': {'start_ms': 0, 'end_ms': 60}}, ['NaN'])
    """
    if isinstance(value, bytes):
        return in_base64(value)
    names = getattr(value, "_fields", None)
    if names is None:
        return value if isinstance(value, str | int) else with_texts(value)
    return {name: shown(part) for name, part in zip(names, value, strict=True)}


def in_base64(data: bytes) -> dict[str, str]:
    """Bytes that are no text."""
    return {"base64": base64.b64encode(data).decode()}


def from_text(serde: Serde[Any], text: str) -> Any:
    """The value that a line names; one of several parts is JSON there.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> from_text(serde_of(int), "7"), from_text(serde_of(dict[str, int]), '{"a": 1}')
    (7, {'a': 1})
    """
    if type(serde) is StringSerde:
        return text
    if type(serde) is BytesSerde:
        return from_base64(text)
    if _is_untyped(serde):
        return _of_any_text(text)
    try:
        if serde.type is Any or type(serde) in _IN_PARTS:
            return from_json(serde, decode_json(text))
        return _of_plain_text(serde, text)
    except (msgspec.DecodeError, RecursionError) as error:
        why = "" if "Expected" in str(error) else f": {error}"
        raise SerdeError(f"{text!r} cannot be read as {type_name(serde)}{why}") from None


def _is_untyped(serde: Serde[Any]) -> bool:
    """Whether the schema of a serde says what its values are, and no class."""
    return serde.type in (None, Any) and serde.asks_registry and type(serde) not in _IN_PARTS


def _of_any_text(text: str) -> Any:
    """JSON, or a text that stands without quotes."""
    try:
        return decode_json(text)
    except msgspec.DecodeError:
        return text


def _of_plain_text(serde: Serde[Any], text: str) -> Any:
    try:
        return convert(text, serde.type, strict=False)
    except msgspec.ValidationError:
        if text[:1] not in ("{", "["):
            raise
        return from_json(serde, decode_json(text))


def from_json(serde: Serde[Any], value: Any) -> Any:
    """The value that a piece of JSON stands for."""
    if _is_untyped(serde):
        return value
    in_parts = _IN_PARTS.get(type(serde))
    names = getattr(serde.type, "_fields", None)
    try:
        if in_parts is not None:
            return in_parts(serde, value)
        if names is not None and type(value) is dict:  # as `shown` names the parts of a tuple
            value = [value[name] for name in names]
        return convert(value, serde.type, strict=not isinstance(value, str) or serde.type is not float)
    except (msgspec.ValidationError, LookupError, TypeError, AttributeError):
        hint = ": write it as `consume --json` prints it" if in_parts else ""
        raise SerdeError(f"{value!r} cannot be read as {type_name(serde)}{hint}") from None


def _windowed(serde: Any, value: Any) -> Windowed[Any]:
    window = convert(value["window"], dict[str, int])
    return Windowed(from_json(serde.inner, value["key"]), Window(window["start_ms"], window["end_ms"]))


def _change(serde: Any, value: Any) -> Change[Any]:
    new, old = (None if value.get(of) is None else from_json(serde.inner, value[of]) for of in ("new", "old"))
    return Change(new, old, value.get("is_latest", True))


_IN_PARTS: dict[type[Any], Callable[[Any, Any], Any]] = {
    TimeWindowedSerde: _windowed,
    SessionWindowedSerde: _windowed,
    WindowRowSerde: _windowed,
    ChangeSerde: _change,
}


def from_base64(text: Any) -> bytes:
    """The bytes that base64 stands for; raises SerdeError where it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise SerdeError(f"{text!r} cannot be read as base64: {error}") from None
