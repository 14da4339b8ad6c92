"""Settings of producers, consumers and topics: each kind is a table of keys, how a value is read, and its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.errors import ConfigError
from kstreams.log.naming import did_you_mean

Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its default and the function that reads a given value (raising ValueError with what is expected)."""

    default: Any
    read: Reader


def number(least: int, most: int = 2**63 - 1) -> Reader:
    """Reads a whole number within bounds."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise ValueError(f"a whole number of at least {least}")
        try:
            n = int(value)
        except (TypeError, ValueError):
            raise ValueError(f"a whole number of at least {least}") from None
        if not least <= n <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return n

    return read


def choice(*allowed: str) -> Reader:
    """Reads one of the allowed words."""

    def read(value: Any) -> str:
        if str(value) not in allowed:
            raise ValueError("one of " + ", ".join(allowed))
        return str(value)

    return read


def flag(value: Any) -> bool:
    """Reads true or false."""
    if str(value).lower() not in ("true", "false"):
        raise ValueError("true or false")
    return str(value).lower() == "true"


def words(*allowed: str) -> Reader:
    """Reads a comma-separated list of allowed words; the result is in the order of `allowed`."""

    def read(value: Any) -> str:
        given = {word.strip() for word in str(value).split(",")}
        if not given or not given <= set(allowed):
            raise ValueError("one or more of " + ", ".join(allowed) + ", separated by commas")
        return ",".join(word for word in allowed if word in given)

    return read


def text(value: Any) -> str | None:
    """Reads a non-empty text; None stays None."""
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError("a text that is not empty")
    return value


def read_settings(kind: str, table: Mapping[str, Setting], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The full settings: what was given, checked, over the defaults.

    Parameters
    ----------
    kind : str
        What the settings are of, for messages: `"topic"`, `"producer"`.
    table : mapping of key to Setting
    given : mapping or None

    Raises
    ------
    ConfigError
        For an unknown key, naming the nearest known one, or for a value that the setting does not take.

    Examples
    --------
    >>> read_settings("demo", {"linger.ms": Setting(5, number(0))}, {"linger.ms": "7"})
    {'linger.ms': 7}
    """
    full = {key: setting.default for key, setting in table.items()}
    for key, value in (given or {}).items():
        if key not in table:
            raise ConfigError(f"{key!r} is no {kind} setting.{did_you_mean(key, table)}")
        try:
            full[key] = table[key].read(value)
        except ValueError as expected:
            raise ConfigError(f"The {kind} setting {key!r} takes {expected}, not {value!r}.") from None
    return full
