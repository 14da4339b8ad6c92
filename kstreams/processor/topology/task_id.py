"""`TaskId`: the name of a task."""

from __future__ import annotations

from typing import NamedTuple


class TaskId(NamedTuple):
    """The sub-topology of a task and its partition; as text `<sub-topology>_<partition>`."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """The task that a text names.

        Examples
        --------
        >>> TaskId.parse("1_3")
        TaskId(sub_topology=1, partition=3)
        """
        sub_topology, _, partition = text.partition("_")
        return cls(int(sub_topology), int(partition))
