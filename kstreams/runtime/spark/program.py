"""`Program` and `Step`: what Spark's workers are told, once per application and once per micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kstreams.config import Config
from kstreams.processor.topology import SubTopology
from kstreams.runtime.spark.state_files import NO_STEP


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
    """

    number: int
    parent: int = NO_STEP
    now_ms: int = 0
    end: bool = False
    globals: Mapping[int, int] = {}


def batch_step(batch_id: int) -> int:
    """Number of the step of a batch."""
    return 2 * batch_id


def end_step(step: int) -> int:
    """Number of the step that ends the input after a step; itself if it is one already."""
    return step | 1


@dataclass(frozen=True)
class Program:
    """An application as the workers need it.

    Parameters
    ----------
    config : Config
    sub_topologies : tuple of SubTopology
        All of them, those of global tables too.
    inputs : mapping of int to tuple of str
        Per sub-topology: real names of the topics it reads.
    topic_names : mapping of str to str
        Real names of internal topics.
    partitions : mapping of str to int
        Number of partitions by real name, of all topics that are read or written.
    tasks : mapping of int to int
        Number of tasks per sub-topology.
    checkpoint : str
        Folder of the application's state files.
    internal : frozenset of str
        Real names of topics that are written and read within a step: repartition topics, and whatever the topology
        both writes and reads.
    snapshot_every : int
        Steps between two snapshots.
    """

    config: Config
    sub_topologies: tuple[SubTopology, ...]
    inputs: Mapping[int, tuple[str, ...]]
    topic_names: Mapping[str, str]
    partitions: Mapping[str, int]
    tasks: Mapping[int, int]
    checkpoint: str
    internal: frozenset[str]
    snapshot_every: int

    @property
    def default_partitions(self) -> int:
        """Number of partitions of a topic that is chosen per record and does not exist yet."""
        return max(self.tasks.values(), default=1)

    @property
    def application_id(self) -> str:
        return self.config.application_id

    def sub_topology(self, number: int) -> SubTopology:
        """The sub-topology with this id."""
        return next(sub for sub in self.sub_topologies if sub.id == number)
