"""`Prepared`: an application laid out on the topics there are, with its checkpoint, before a session runs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import NamedTuple

from kstreams.config import Config
from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Log
from kstreams.processor.context.errors.failures import check_dead_letter_topic, required_topics
from kstreams.processor.topology.layout import Layout, lay_out, unmatched
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.checkpoint import Checkpoint
from kstreams.runtime.spark.program import Program, group_of, program_of, source_partitions
from kstreams.runtime.spark.relational.path_plan import PathPlan, needs_tasks, plan_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.opening import open_storage


class PlannedApplication(NamedTuple):
    """An application on the topics there are.

    Parameters
    ----------
    layout : Layout
    plan : PathPlan
        The path that every operator takes.
    existing : mapping of str to int
        Number of partitions of every topic there is.
    """

    layout: Layout
    plan: PathPlan
    existing: Mapping[str, int]


class Prepared(NamedTuple):
    """The same with its checkpoint.

    Parameters
    ----------
    plan : PathPlan
    checkpoint : Checkpoint
    program : Program
        What the workers need.
    """

    plan: PathPlan
    checkpoint: Checkpoint
    program: Program

    @property
    def in_tasks(self) -> Set[int]:
        """The sub-topologies that run as tasks, or beside them."""
        return self.program.tasks.keys() - self.plan.in_queries

    @property
    def sources(self) -> list[TopicPartition]:
        """What these read."""
        return source_partitions(self.program, self.in_tasks)

    @property
    def group(self) -> str:
        """The consumer group that holds their positions."""
        return group_of(self.program.application_id)


def laid_out(topology: Topology, config: Config, log: Log) -> PlannedApplication:
    """Lay an application out; nothing changes.

    Raises
    ------
    UnknownTopicError, TopologyError
        When the topology does not fit the topics, or the dead-letter topic is missing.
    """
    settings = SparkSettings.of(config)
    existing = _existing(log, required_topics(topology, config, settings.prefix))
    layout = lay_out(topology, config.application_id, existing)
    if (mismatch := unmatched(topology, layout)) is not None:
        raise UnknownTopicError(mismatch)
    check_dead_letter_topic(config, existing, settings.prefix)
    return PlannedApplication(layout, plan_of(topology, settings.path, needs_tasks(config)), existing)


def prepare(topology: Topology, config: Config, log: Log) -> Prepared:
    """Lay an application out and open its checkpoint.

    Raises
    ------
    UnknownTopicError, TopologyError
        As `laid_out`; and when the checkpoint belongs to another topology.
    """
    settings = SparkSettings.of(config)
    (layout, plan, existing) = laid_out(topology, config, log)
    storage = open_storage(settings.checkpoint_of(config.application_id), settings.conf)
    checkpoint = Checkpoint(storage, topology, plan.described())
    program = program_of(topology, config, settings, layout, existing, storage.location, checkpoint_id=checkpoint.id)
    return Prepared(plan, checkpoint, program)


def _existing(log: Log, required: Collection[str]) -> Mapping[str, int]:
    with log.admin() as admin:
        return {name: topic.partitions for name, topic in admin.topics(required).items()}
