"""`Step`: the unit that is applied once, a micro-batch or the end of bounded input; what it starts from and leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.topology.sub_topologies import TaskId

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


class StateVersion(NamedTuple):
    """One state of one task: the step and round that made it, as a number, and the digest of what they changed."""

    number: int
    digest: bytes


EMPTY = StateVersion(version_number(NO_STEP), bytes(16))
"""The state before the first step."""


class Step(NamedTuple):
    """One micro-batch, or the end of bounded input: the unit that is applied once.

    Parameters
    ----------
    number : int
        Grows from step to step: twice the id of Spark's batch, one more for the end of input after it.
    now_ms : int
        Wall-clock time of the step, the same whenever it is run again.
    end : bool
        Whether bounded input is over.
    states : mapping of str to StateVersion
        By task: the state that it goes on from, of a global table the state to look into. A task that is not here
        starts from nothing.
    round_number : int
        The round within this step.
    behind : frozenset of TopicPartition
        The source partitions that have more records than the steps so far have taken, or may get them: nothing that
        they feed is idle.
    resting : frozenset of str
        The tasks that do nothing without records, as they said in the step before: nothing in them waits for a time.
    """

    number: int
    now_ms: int = 0
    end: bool = False
    states: Mapping[str, StateVersion] = {}
    round_number: int = 0
    behind: frozenset[TopicPartition] = frozenset()
    resting: frozenset[str] = frozenset()

    @property
    def version_number(self) -> int:
        """Number of the state that this step, or this round of it, makes."""
        return version_number(self.number, self.round_number)

    def state_of(self, sub_topology: int, partition: int) -> StateVersion:
        """The state that a task goes on from."""
        return self.states.get(str(TaskId(sub_topology, partition)), EMPTY)

    def only(self, sub_topologies: Collection[int]) -> Step:
        """The step as some sub-topologies need it, without the states of the others."""
        prefixes = {str(number) for number in sub_topologies}
        mine = {name: state for name, state in self.states.items() if name.partition("_")[0] in prefixes}
        return self._replace(states=mine, resting=self.resting & mine.keys())


class AppliedStep(NamedTuple):
    """A step that the log has committed.

    Parameters
    ----------
    number : int
    manifest : str
        The digest of the manifest of the state that it left, or nothing.
    outputs : str
        The digest of the list of the rows that were staged in it, or nothing.
    """

    number: int = NO_STEP
    manifest: str = ""
    outputs: str = ""


def batch_step(batch_id: int) -> int:
    """Number of the step of a batch."""
    return 2 * batch_id


def end_step(step: int) -> int:
    """Number of the step that ends the input after a step; itself if it is one already."""
    return step | 1
