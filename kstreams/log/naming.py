"""Checks of the names and sizes of topics, and hints about mistyped names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kstreams.errors import ConfigError
from kstreams.kernel.advice import nearest_name

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)


def check_more_partitions(name: str, partitions: int, total: int) -> None:
    """Raise ConfigError unless `total` is more than the partitions that a topic has.

    Examples
    --------
    >>> check_more_partitions("words", 2, 3)
    """
    if total <= partitions:
        raise ConfigError(
            f"The topic {name!r} has {partitions} partitions, which cannot be removed: give a greater number, "
            f"not {total}."
        )


def check_topic_name(name: str) -> str:
    """Return the name if Kafka allows it for a topic, else raise ConfigError.

    Examples
    --------
    >>> check_topic_name("flights.2013")
    'flights.2013'
    """
    if name in {".", ".."} or not _LEGAL.fullmatch(name):
        raise ConfigError(
            f"{name!r} is no topic name: use 1 to 249 letters, digits, '.', '_' or '-', and neither '.' nor '..'."
        )
    return name


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return a hint with the known name nearest to `name`. Empty if no known name is similar.

    Examples
    --------
    >>> did_you_mean("flight", ["flights", "weather"])
    " Did you mean 'flights'?"
    """
    suggestion = nearest_name(name, known_names)
    return f" Did you mean {suggestion!r}?" if suggestion else ""
