"""Kinds of configuration values. A kind reads values from Python, the environment or a file, and checks them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from kstreams.errors import ConfigError
from kstreams.kernel.offset_reset import offset_reset_of

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,200}")
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
ADDRESS_PATTERN = re.compile(r"([^/\s?#]+):([0-9]{1,5})((?:/[\w.~%-]+)*)/?")
"""Host, port and path of the server of a process."""
_SIZES = {"": 1, "kib": 1024, "mib": 1024**2, "gib": 1024**3}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its name in the docs, and the function that reads a value or raises ValueError with a reason."""

    name: str
    read: Callable[[Any], Any]


def integer(low: int | None = None, high: int | None = None) -> Kind:
    """Return the kind of whole numbers from `low` to `high`, both included."""
    return Kind("integer", lambda value: _within(_whole(value), low, high))


def duration(low: int = 0) -> Kind:
    """Return the kind of durations of at least `low` milliseconds: an int of milliseconds, or a timedelta."""

    def read(value: object) -> int:
        milliseconds = value // timedelta(milliseconds=1) if isinstance(value, timedelta) else _whole(value)
        return _within(milliseconds, low, None)

    return Kind("milliseconds or timedelta", read)


def choice(*allowed: str) -> Kind:
    """Return the kind of values that are one of these words."""

    def read(value: object) -> str:
        if value not in allowed:
            raise ValueError(f"allowed are {', '.join(allowed)}")
        return str(value)

    return Kind(" | ".join(allowed), read)


def name_of(*allowed: str) -> Kind:
    """Return the kind of values that are one of these names of Kafka, in any case. They become lower case."""
    names = choice(*allowed)
    return Kind(names.name, lambda value: names.read(value.lower() if isinstance(value, str) else value))


def words(*allowed: str) -> Kind:
    """Return the kind of comma-separated words.

    Parameters
    ----------
    *allowed : str
        The words. Neither of the first two can be combined with others.
    """

    def read(value: object) -> str:
        words = [word.strip() for word in _text(value).split(",")]
        if unknown := [word for word in words if word not in allowed]:
            raise ValueError(f"{unknown[0]!r} is none of {', '.join(allowed)}")
        if len(words) > 1 and set(words) & set(allowed[:2]):
            raise ValueError(f"{allowed[0]!r} and {allowed[1]!r} stand alone")
        return ",".join(words)

    return Kind("words", read)


def class_choice(*allowed: str) -> Kind:
    """Return the kind of values that name one of these Java classes. The package is optional, and is removed."""
    names = choice(*allowed)
    return Kind(names.name, lambda value: names.read(value.rpartition(".")[2] if isinstance(value, str) else value))


def naming_strategy() -> Kind:
    """Return the kind of subject name strategies: the name of a strategy of Confluent, or a function."""
    classes = class_choice(
        "topic", "record", "topic-record", "TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"
    )

    def read(value: object) -> object:
        return value if callable(value) else classes.read(value)

    return Kind(f"{classes.name} | function", read)


def handler(*allowed: str) -> Kind:
    """Return the kind of handlers: one of these words, or a function."""
    words = choice(*allowed)

    def read(value: object) -> object:
        return value if callable(value) else words.read(value)

    return Kind(f"{words.name} | function", read)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("a whole number is needed")
    try:
        return int(value)
    except ValueError:
        raise ValueError("a whole number is needed") from None


def _within(number: int, low: int | None, high: int | None) -> int:
    if low is not None and number < low:
        raise ValueError(f"it must be at least {low}")
    if high is not None and number > high:
        raise ValueError(f"it must be at most {high}")
    return number


def _bytes(value: object) -> int:
    if not isinstance(value, str):
        return _within(_whole(value), 0, None)
    match = re.fullmatch(r"\s*(\d+)\s*(|kib|mib|gib)\s*", value.lower())
    if not match:
        raise ValueError("a number of bytes is needed, such as 1048576 or '64 MiB'")
    return int(match[1]) * _SIZES[match[2]]


def _bytes_or_no_limit(value: object) -> int | None:
    return None if value in (-1, "-1") else _bytes(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("text is needed")
    return value


def _flag(value: object) -> bool:
    flag = value if isinstance(value, bool) else _FLAGS.get(str(value).lower())
    if flag is None:
        raise ValueError("true or false is needed")
    return flag


def _path(value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("a path is needed")
    return Path(value).expanduser()


def _topic_prefix(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value) or value in (".", ".."):
        raise ValueError("it starts names of topics, so only letters, digits, '.', '_' and '-' may stand in it")
    return value


def _names(value: object) -> tuple[str, ...]:
    parts = value if isinstance(value, list | tuple) else _text(value).split(",")
    return tuple(name.strip() for name in parts if name.strip())


def _servers(value: object) -> str:
    return ",".join(value) if isinstance(value, list | tuple) else _text(value)


def _address(value: object) -> str:
    if not isinstance(value, str) or not ADDRESS_PATTERN.fullmatch(value):
        raise ValueError("an address is needed, such as '10.0.0.1:8080', or '10.0.0.1:8080/stores' below a path")
    return value


def _offset_reset(value: Any) -> str | timedelta | None:
    try:
        return offset_reset_of(value)
    except ConfigError:
        raise ValueError(
            "allowed are earliest, latest, none, and a while back as by_duration:PT1H or a timedelta"
        ) from None


TEXT = Kind("text", _text)
OFFSET_RESET = Kind("earliest | latest | none | by_duration:PT1H", _offset_reset)
ADDRESS = Kind("host:port", _address)
FLAG = Kind("true | false", _flag)
PATH = Kind("path", _path)
SIZE = Kind("bytes, or text such as '64 MiB'", _bytes)
SIZE_OR_NO_LIMIT = Kind("bytes, or text such as '64 MiB'; -1: no limit", _bytes_or_no_limit)
TOPIC_PREFIX = Kind("name", _topic_prefix)
NAMES = Kind("names, comma separated", _names)
SERVERS = Kind("host:port, comma separated", _servers)
OBJECT = Kind("Python object", lambda value: value)
