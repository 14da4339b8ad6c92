"""What a `Task` is made from, beside its sub-topology and its application: what it uses, and where it resumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kstreams.processor.task.collector import Collector
from kstreams.state.api import StateStore, TaskState


@dataclass(frozen=True, slots=True, eq=False)
class TaskResources:
    """What a task reads and writes.

    Parameters
    ----------
    state : TaskState
        The open stores.
    collector : Collector
        Takes what the sinks write, encoded.
    global_stores : mapping of str to StateStore
        Stores of global tables, by name.
    sends_in_order : bool
        Whether output topics are sent in the order in which they got their first rows.
    """

    state: TaskState
    collector: Collector
    global_stores: Mapping[str, StateStore] = field(default_factory=dict)
    sends_in_order: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ResumePoint:
    """Where an earlier instance of a task left off.

    Parameters
    ----------
    metadata : mapping of str to int
        The task metadata of the last commit (`Task.metadata()`); the task goes on as if it had never stopped.
    deadlines : mapping of str to int
        What `Task.deadlines()` gave, when this task goes on where that one left off: punctuators then keep their
        rhythm. After a restart they start anew, as in Kafka Streams.
    """

    metadata: Mapping[str, int] = field(default_factory=dict)
    deadlines: Mapping[str, int] = field(default_factory=dict)


START = ResumePoint()
"""Of a task that runs for the first time."""
