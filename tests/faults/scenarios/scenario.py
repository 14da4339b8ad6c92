"""`Scenario`: a fault, where it can be had, and the function that lets it happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.faults.request import Counts, Request


class Scenario(NamedTuple):
    """A scenario of `python -m tests.faults`.

    Parameters
    ----------
    run : callable
        Its docstring says in its first line what happens.
    homes : tuple of str
    engine : str
    records, rounds : int
        Defaults: a run of seconds.
    """

    run: Callable[[Request], Counts]
    homes: tuple[str, ...] = ("embedded", "kafka")
    engine: str = "native"
    records: int = 6_000
    rounds: int = 3

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.run.__name__.replace("_", "-")

    @property
    def title(self) -> str:
        """What happens."""
        return (self.run.__doc__ or "").partition("\n")[0]
