"""Names of topics and settings: which are allowed, and which known one was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from kstreams.errors import ConfigError

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)


def check_total(name: str, partitions: int, total: int) -> None:
    """Raise ConfigError unless a topic that has `partitions` gets more.

    Examples
    --------
    >>> check_total("words", 2, 3)
    """
    if total <= partitions:
        raise ConfigError(
            f"The topic {name!r} has {partitions} partitions, and none is ever taken away: give a number above that, "
            f"not {total}."
        )


def check_topic_name(name: str) -> str:
    """The name itself if Kafka allows it as a topic's, else ConfigError.

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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the known name nearest to `name`, or nothing when none is near.

    Examples
    --------
    >>> did_you_mean("flight", ["flights", "weather"])
    " Did you mean 'flights'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
