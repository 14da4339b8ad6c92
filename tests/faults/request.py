"""What a fault run is asked for, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

EXACTLY_ONCE = "exactly_once_v2"
AT_LEAST_ONCE = "at_least_once"


class Request(NamedTuple):
    """The arguments of a run.

    Parameters
    ----------
    home : {"embedded", "kafka"}
    engine : {"native", "spark"}
    seed : int
    rounds : int
        The number of faults.
    records : int
    guarantee : str
        `processing.guarantee`.
    """

    home: str = "embedded"
    engine: str = "native"
    seed: int = 1
    rounds: int = 3
    records: int = 6_000
    guarantee: str = EXACTLY_ONCE

    @property
    def is_once(self) -> bool:
        """Whether each result must be there once."""
        return self.guarantee == EXACTLY_ONCE


@dataclass
class Counts:
    """The counts of a run, which `python -m tests.faults` prints."""

    records: int = 0
    kills: int = 0
    faults: int = 0
    duplicates: int = 0
    losses: int = 0
    order_violations: int = 0
    longest_gap_s: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def violations(self, *, is_once: bool = True) -> list[str]:
        """Return what must not be; at least once, duplicates may be."""
        violated = [f"{self.losses} losses"] if self.losses else []
        violated += [f"{self.duplicates} duplicates"] if self.duplicates and is_once else []
        violated += [f"{self.order_violations} order violations"] if self.order_violations else []
        return violated + self.wrong

    def text(self) -> str:
        """Return the counts, one a line."""
        rows = {
            "records": f"{self.records:,}",
            "kills": self.kills,
            "faults": self.faults,
            "duplicates": self.duplicates,
            "losses": self.losses,
            "order violations": self.order_violations,
            "longest gap without output": f"{self.longest_gap_s:.1f} s",
        }
        return "\n".join(f"{name}: {value}" for name, value in rows.items())
