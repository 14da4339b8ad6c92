"""Checks of the names and sizes of topics and of quotas, and hints about mistyped names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kstreams.errors import ConfigError
from kstreams.kernel.advice import nearest_name
from kstreams.log.api import QUOTAS

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


def check_client_id(client_id: str | None) -> None:
    """Raise ConfigError for an empty client id. None stands for the default of all client ids."""
    if client_id == "":
        raise ConfigError("A client id for a quota is not empty: name the client, or set the default.")


def checked_quota(name: str, rate: float | None) -> int | None:
    """Return the rate of a quota; ConfigError for an unknown quota or an illegal rate. None stands for no quota.

    Examples
    --------
    >>> checked_quota("producer_byte_rate", 1e6)
    1000000
    """
    if name not in QUOTAS:
        raise ConfigError(f"There is no quota {name!r}.{did_you_mean(name, QUOTAS)} There are {' and '.join(QUOTAS)}.")
    if rate is None:
        return None
    if not 1 <= rate < 2**63 or int(rate) != rate:
        raise ConfigError(f"The quota {name} is a whole number of bytes per second, at least 1, not {rate}.")
    return int(rate)


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Return a hint with the known name nearest to `name`. Empty if no known name is similar.

    Examples
    --------
    >>> did_you_mean("flight", ["flights", "weather"])
    " Did you mean 'flights'?"
    """
    suggestion = nearest_name(name, known_names)
    return f" Did you mean {suggestion!r}?" if suggestion else ""
