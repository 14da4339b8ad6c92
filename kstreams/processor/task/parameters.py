"""The parameters of a `Task` beside its sub-topology and its application: its resources, and where it resumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kstreams.processor.task.collector import Collector
from kstreams.state.api import StateStore, TaskState


@dataclass(frozen=True, slots=True, eq=False)
class TaskResources:
    """The stores and the output of a task.

    Parameters
    ----------
    state : TaskState
        The open stores.
    collector : Collector
        Takes the encoded records of the sinks.
    global_stores : mapping of str to StateStore
        Stores of global tables, by name.
    sends_in_order : bool
        True if output topics are sent in the order of their first rows.
    """

    state: TaskState
    collector: Collector
    global_stores: Mapping[str, StateStore] = field(default_factory=dict)
    sends_in_order: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ResumePoint:
    """The point at which an earlier instance of a task stopped.

    Parameters
    ----------
    metadata : mapping of str to int
        The task metadata of the last commit (`Task.metadata()`); the task continues as if it had never stopped.
    deadlines : mapping of str to int
        The result of `Task.deadlines()` of the instance that this one continues: punctuators then keep their phase.
        After a restart they start anew, as in Kafka Streams.
    """

    metadata: Mapping[str, int] = field(default_factory=dict)
    deadlines: Mapping[str, int] = field(default_factory=dict)


START = ResumePoint()
"""The resume point of a task that runs for the first time."""
