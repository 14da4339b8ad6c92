"""How many partitions a topic may get later."""

from __future__ import annotations

from kstreams.errors import ConfigError


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
