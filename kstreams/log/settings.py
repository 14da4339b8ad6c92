"""Settings of producers, consumers and topics. They are declared as `Key`s like the settings of applications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kstreams.config.key import Key
from kstreams.config.kinds import Kind
from kstreams.errors import ConfigError
from kstreams.log.naming import did_you_mean

Keys = Mapping[str, Key]


def keys(*declared: Key) -> dict[str, Key]:
    """Return keys by name."""
    return {key.name: key for key in declared}


def number(least: int, most: int = 2**63 - 1) -> Kind:
    """Return the kind of whole numbers from `least` to `most`."""

    def read(value: object) -> int:
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise ValueError(f"a whole number of at least {least}")
        try:
            parsed = int(value)
        except (ValueError, OverflowError):
            raise ValueError(f"a whole number of at least {least}") from None
        if isinstance(value, float) and not value.is_integer():
            raise ValueError(f"a whole number of at least {least}")
        if not least <= parsed <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return parsed

    return Kind(f"integer from {least}" if most == 2**63 - 1 else f"integer from {least} to {most}", read)


def choice(*allowed: str) -> Kind:
    """Return the kind of values that are one of a few words."""

    def read(value: object) -> str:
        if str(value) not in allowed:
            raise ValueError("one of " + ", ".join(allowed))
        return str(value)

    return Kind(" | ".join(allowed), read)


def subset(*allowed: str) -> Kind:
    """Return the kind of lists of a few words, separated by commas. Values are in the order of `allowed`."""

    def read(value: object) -> str:
        words = {word.strip() for word in str(value).split(",")}
        if not words or not words <= set(allowed):
            raise ValueError("one or more of " + ", ".join(allowed) + ", separated by commas")
        return ",".join(word for word in allowed if word in words)

    return Kind(", ".join(allowed) + " (one or more)", read)


def _flag(value: object) -> bool:
    if str(value).lower() not in ("true", "false"):
        raise ValueError("true or false")
    return str(value).lower() == "true"


def _text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ValueError("a text that is not empty")
    return value


FLAG = Kind("true | false", _flag)
TEXT = Kind("text", _text)


QUOTA_DELAYS = "quota.delays"
QUOTA_KEYS = (
    Key("client.id", TEXT, None, "Name of the client, whose bytes count for the quota of this id."),
    Key(QUOTA_DELAYS, FLAG, True, "Whether the client waits while its client id is over its quota.", own=True),
)
"""The settings of clients that count bytes for a quota."""


def read_settings(owner: str, declared: Keys, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Check settings, and return them together with the defaults of the others.

    Parameters
    ----------
    owner : str
        The owner of the settings, for messages: `"topic"`, `"producer"`, `"consumer"`.
    declared : mapping of str to Key
    settings : mapping or None

    Raises
    ------
    ConfigError
        If a key is unknown or a value is illegal. The error names the nearest known key.

    Examples
    --------
    >>> linger = Key("linger.ms", number(0), 5, "Time that a record waits for others.")
    >>> read_settings("demo", keys(linger), {"linger.ms": "7"})
    {'linger.ms': 7}
    """
    values = {name: key.default for name, key in declared.items()}
    for name, value in (settings or {}).items():
        if name not in declared:
            raise ConfigError(f"{name!r} is no {owner} setting.{did_you_mean(name, declared)}")
        values[name] = read_setting(owner, declared[name], value)
    return values


def read_setting(owner: str, key: Key, value: object) -> object:
    """Return the checked value of one setting. Raises ConfigError for an illegal value."""
    try:
        return key.kind.read(value)
    except ValueError as expected:
        raise ConfigError(f"The {owner} setting {key.name!r} takes {expected}, not {value!r}.") from None
