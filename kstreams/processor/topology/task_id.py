"""`TaskId`: the name of a task."""

from __future__ import annotations

from typing import NamedTuple


class TaskId(NamedTuple):
    """The sub-topology of a task and its partition; as text `<sub-topology>_<partition>`."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"
