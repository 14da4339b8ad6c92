"""`PreparedApplication`: an application with its layout on the existing topics and its checkpoint, before it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import NamedTuple

from kstreams.config import Config
from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log
from kstreams.processor.context.failures import check_dead_letter_topic, required_topics
from kstreams.processor.topology.layout import Layout, lay_out, unmatched
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.checkpoint import Checkpoint
from kstreams.runtime.spark.program import Program, group_of, program_of, source_partitions
from kstreams.runtime.spark.relational.path_plan import PathPlan, plan_of
from kstreams.runtime.spark.settings import SparkSettings, needs_tasks
from kstreams.runtime.spark.storage.opening import open_storage


class PlannedApplication(NamedTuple):
    """The layout of an application on the existing topics.

    Parameters
    ----------
    layout : Layout
    plan : PathPlan
        The path of every operator.
    existing : mapping of str to int
        The number of partitions of each existing topic.
    """

    layout: Layout
    plan: PathPlan
    existing: Mapping[str, int]


class PreparedApplication(NamedTuple):
    """An application whose checkpoint is open.

    Parameters
    ----------
    plan : PathPlan
    checkpoint : Checkpoint
    program : Program
        The data that is sent to the workers.
    """

    plan: PathPlan
    checkpoint: Checkpoint
    program: Program

    @property
    def in_tasks(self) -> Set[int]:
        """The sub-topologies that do not run as streaming queries of their own."""
        return self.program.tasks.keys() - self.plan.in_queries

    @property
    def sources(self) -> list[TopicPartition]:
        """The partitions that these sub-topologies read."""
        return source_partitions(self.program, self.in_tasks)

    @property
    def group(self) -> str:
        """The consumer group that holds the positions of these sub-topologies."""
        return group_of(self.program.application_id)


def plan_application(topology: Topology, config: Config, log: Log) -> PlannedApplication:
    """Lay an application out on the existing topics. This changes neither topics nor the checkpoint.

    Raises
    ------
    UnknownTopicError, TopologyError
        If the topology does not fit the topics, or the dead-letter topic is missing.
    """
    settings = SparkSettings.of(config)
    existing = _existing(log, required_topics(topology, config, settings.prefix))
    layout = lay_out(topology, config.application_id, existing)
    if (mismatch := unmatched(topology, layout)) is not None:
        raise UnknownTopicError(mismatch)
    check_dead_letter_topic(config, existing, settings.prefix)
    return PlannedApplication(layout, plan_of(topology, settings.path, needs_tasks(config)), existing)


def prepare(topology: Topology, config: Config, log: Log) -> PreparedApplication:
    """Lay an application out and open its checkpoint.

    Raises
    ------
    UnknownTopicError, TopologyError
        As `plan_application`, and if the checkpoint belongs to another topology.
    """
    settings = SparkSettings.of(config)
    (layout, plan, existing) = plan_application(topology, config, log)
    storage = open_storage(settings.checkpoint_of(config.application_id), settings.conf)
    checkpoint = Checkpoint(storage, topology, plan.described())
    program = program_of(topology, config, settings, layout, existing, storage.location, checkpoint_id=checkpoint.id)
    return PreparedApplication(plan, checkpoint, program)


def _existing(log: Log, required: Collection[str]) -> Mapping[str, int]:
    with log.admin() as admin:
        return {name: topic.partitions for name, topic in admin.topics(required).items()}
