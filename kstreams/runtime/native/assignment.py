"""Which tasks a topology has, and which thread runs which: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kstreams.batch import TopicPartition
from kstreams.processor.task import TaskId
from kstreams.processor.topology import SubTopology


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """One task to run: a sub-topology for one partition.

    Parameters
    ----------
    sub_topology : SubTopology
    partition : int
    inputs : tuple of TopicPartition
        What it reads, by real topic names, sorted.
    """

    sub_topology: SubTopology
    partition: int
    inputs: tuple[TopicPartition, ...]

    @property
    def id(self) -> TaskId:
        """Its sub-topology and partition."""
        return TaskId(self.sub_topology.id, self.partition)


def tasks_of(sub_topology: SubTopology, topics: Sequence[str], partition_counts: Mapping[str, int]) -> list[TaskPlan]:
    """The tasks of a sub-topology: as many as its widest input has partitions.

    Task i reads partition i of every topic that has one.

    Parameters
    ----------
    sub_topology : SubTopology
    topics : sequence of str
        Real names of the topics it reads.
    partition_counts : mapping
        Number of partitions by real topic name.

    Examples
    --------
    >>> tasks = tasks_of(SubTopology(0, (), ()), ["a", "b"], {"a": 1, "b": 2})
    >>> [[str(source) for source in task.inputs] for task in tasks]
    [['a-0', 'b-0'], ['b-1']]
    """

    def inputs(partition: int) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(t, partition) for t in sorted(set(topics)) if partition < partition_counts[t])

    widest = max((partition_counts[topic] for topic in topics), default=0)
    return [TaskPlan(sub_topology, partition, inputs(partition)) for partition in range(widest)]


def assign(tasks: Sequence[TaskPlan], threads: int) -> list[list[TaskPlan]]:
    """Tasks shared out to threads: evenly in number, and each sub-topology spread as far as it goes.

    Parameters
    ----------
    tasks : sequence of TaskPlan
    threads : int
        At least 1; threads beyond the number of tasks get none.

    Examples
    --------
    >>> plans = [TaskPlan(SubTopology(s, (), ()), p, ()) for s in (0, 1) for p in range(3)]
    >>> [[str(task.id) for task in share] for share in assign(plans, 2)]
    [['0_0', '0_2', '1_1'], ['0_1', '1_0', '1_2']]
    """
    ordered = sorted(tasks, key=lambda task: task.id)
    return [list(ordered[thread::threads]) for thread in range(threads)]
