"""`Step`: a micro-batch or the end of bounded input, applied exactly once; `StateVersion`: the state after a step."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kstreams.kernel.batch import TopicPartition
from kstreams.processor.topology.sub_topologies import TaskId

NO_STEP = -1
MAX_ROUNDS = 1 << 16
"""The maximum number of rounds of a sub-topology in one step. Only sub-topologies in a cycle run several rounds."""


def version_number(step: int, round_number: int = 0) -> int:
    """Return the version number of the state after a round of a step.

    Examples
    --------
    >>> version_number(0, 1) - version_number(0), version_number(1) - version_number(0)
    (1, 65536)
    """
    return step * MAX_ROUNDS + round_number


class StateVersion(NamedTuple):
    """A state of a task: the version number of the round that wrote it, and the digest of the round's changes."""

    number: int
    digest: bytes


EMPTY = StateVersion(version_number(NO_STEP), bytes(16))
"""The state before the first step."""


class Step(NamedTuple):
    """A micro-batch, or the end of bounded input: the unit that is applied exactly once.

    Parameters
    ----------
    number : int
        Twice the id of the batch; one more for the end of input after that batch.
    now_ms : int
        The wall-clock time of the step, which is the same in every attempt.
    end : bool
        True for the end of bounded input.
    states : mapping of str to StateVersion
        By task: the state that the task continues, or for a global table the state that joins read. A task that is
        missing here starts with empty state.
    round_number : int
        The round within this step.
    behind : frozenset of TopicPartition
        The source partitions with more records than this step takes, or that may get more. They are not idle.
    resting : frozenset of str
        The tasks that need not run without records: they reported in the step before that no operator waits for a
        time.
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
        """The version number of the state after this round of the step."""
        return version_number(self.number, self.round_number)

    def state_of(self, sub_topology: int, partition: int) -> StateVersion:
        """Return the state that a task continues."""
        return self.states.get(str(TaskId(sub_topology, partition)), EMPTY)

    def only(self, sub_topologies: Collection[int]) -> Step:
        """Return the step with the states of the tasks of some sub-topologies only."""
        prefixes = {str(number) for number in sub_topologies}
        states = {task: state for task, state in self.states.items() if task.partition("_")[0] in prefixes}
        return self._replace(states=states, resting=self.resting & states.keys())


class AppliedStep(NamedTuple):
    """A step that the log has committed.

    Parameters
    ----------
    number : int
    manifest : str
        The digest of the manifest of the state after the step; empty if there is none.
    outputs : str
        The digest of the list of rows that were staged in the step; empty if there is none.
    """

    number: int = NO_STEP
    manifest: str = ""
    outputs: str = ""


def batch_step(batch_id: int) -> int:
    """Return the number of the step of a batch."""
    return 2 * batch_id


def end_step(step: int) -> int:
    """Return the number of the step that ends the input after a step; an end step returns its own number."""
    return step | 1
