"""`Step`: the unit that is applied once, a micro-batch or the end of bounded input; and how steps are numbered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kstreams.batch import TopicPartition

NO_STEP = -1
MAX_ROUNDS = 1 << 16
"""Most rounds of a sub-topology in one step; only those that feed themselves run more than once."""


def version_number(step: int, round_number: int = 0) -> int:
    """One number for a step and a round in it.

    Examples
    --------
    >>> version_number(0, 1) - version_number(0), version_number(1) - version_number(0)
    (1, 65536)
    """
    return step * MAX_ROUNDS + round_number


class Step(NamedTuple):
    """One micro-batch, or the end of bounded input: the unit that is applied once.

    Parameters
    ----------
    number : int
        Grows from step to step: twice the id of Spark's batch, one more for the end of input after it.
    parent : int
        The step applied before it, `NO_STEP` for the first.
    now_ms : int
        Wall-clock time of the step, the same whenever it is run again.
    end : bool
        Whether bounded input is over.
    globals : mapping of int to int
        Per sub-topology of a global table: the step that made the state to look into.
    rounds : mapping of int to int
        Per sub-topology that feeds itself: how many rounds it took in the parent. Any other takes one.
    round_number : int
        The round within this step.
    behind : frozenset of TopicPartition
        The source partitions that have more records than the steps so far have taken, or may get them: nothing that
        they feed is idle.
    """

    number: int
    parent: int = NO_STEP
    now_ms: int = 0
    end: bool = False
    globals: Mapping[int, int] = {}
    rounds: Mapping[int, int] = {}
    round_number: int = 0
    behind: frozenset[TopicPartition] = frozenset()

    @property
    def version_number(self) -> int:
        """Number of the state that this step, or this round of it, makes."""
        return version_number(self.number, self.round_number)

    def before(self, sub_topology: int) -> int:
        """Number of the state that a sub-topology goes on from."""
        if self.round_number:
            return self.version_number - 1
        last = self.rounds.get(sub_topology, 1) - 1
        return version_number(self.parent, last)


def batch_step(batch_id: int) -> int:
    """Number of the step of a batch."""
    return 2 * batch_id


def end_step(step: int) -> int:
    """Number of the step that ends the input after a step; itself if it is one already."""
    return step | 1
