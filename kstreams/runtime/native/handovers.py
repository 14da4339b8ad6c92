"""`Handovers`: how often each task was given to this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kstreams.processor.topology.task_id import TaskId


class Handovers:
    """The tasks that one running application was given.

    Examples
    --------
    >>> handovers = Handovers()
    >>> handovers.given([TaskId(0, 0), TaskId(0, 1)])
    >>> handovers.given([TaskId(0, 1)])
    >>> handovers.again
    1
    """

    def __init__(self) -> None:
        self._given: Counter[TaskId] = Counter()

    def given(self, tasks: Iterable[TaskId]) -> None:
        """The process got these, which it did not have a moment ago."""
        self._given = self._given + Counter(tasks)  # others may read it meanwhile

    def counts(self) -> Mapping[TaskId, int]:
        """How often each task was given."""
        return self._given

    @property
    def again(self) -> int:
        """How often a task was given that the process had had before."""
        return self._given.total() - len(self._given)
