"""`RuntimeContext`: the parts that all threads of a running application share; `open_context` creates them."""

from __future__ import annotations

import logging
import os
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from kstreams.config import Config, MemoryShares
from kstreams.errors import CorruptStateError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log import home_of
from kstreams.log.api import Admin, Consumer, Log, Producer
from kstreams.log.settings import QUOTA_DELAYS
from kstreams.metrics.samples import SampleWindows
from kstreams.metrics.sensors import UpdaterSensors
from kstreams.processor.context.application import Application, TaskSettings
from kstreams.processor.topology.fingerprint import fingerprint_of
from kstreams.processor.topology.layout import Layout, unmatched
from kstreams.processor.topology.offset_reset import Reset, default_reset
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.connectors import ApplicationConnectors
from kstreams.runtime.native.bounded_run import BoundedRun, RunEnd, aligned_sub_topologies
from kstreams.runtime.native.connectors import Connectors
from kstreams.runtime.native.group.fencing import transactional_id
from kstreams.runtime.native.settings import ThreadSettings
from kstreams.runtime.native.state.deletions import refuse_half_forgotten
from kstreams.runtime.native.state.global_tables import GlobalTables
from kstreams.runtime.native.state.locks import state_folder
from kstreams.runtime.native.state.rebuilds import Rebuilds
from kstreams.runtime.native.state.restore import OnRestore
from kstreams.runtime.native.state.topology_file import TopologyFile
from kstreams.runtime.native.topics import prepare_topics
from kstreams.state import StateLimits


class AssignmentCounts:
    """The number of assignments of each task to this process.

    Examples
    --------
    >>> assignments = AssignmentCounts()
    >>> assignments.add([TaskId(0, 0), TaskId(0, 1)])
    >>> assignments.add([TaskId(0, 1)])
    >>> assignments.repeated
    1
    """

    def __init__(self) -> None:
        self._counts: Counter[TaskId] = Counter()

    def add(self, tasks: Iterable[TaskId]) -> None:
        """Count tasks that are newly assigned to this process."""
        self._counts = self._counts + Counter(tasks)  # a new object, because other threads may read the former one

    def counts(self) -> Mapping[TaskId, int]:
        """Return the number of assignments of each task."""
        return self._counts

    @property
    def repeated(self) -> int:
        """The number of assignments of tasks that were assigned to the process before."""
        return self._counts.total() - len(self._counts)


_ALLOCATOR_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"


def use_system_allocator() -> None:
    """Use the system allocator for Arrow, unless `ARROW_DEFAULT_MEMORY_POOL` names another one.

    Arrow's default allocator retains freed memory per thread. With a budget of 64 MiB, a run used up to 1.7 times the
    budget, and 0.8 times with the system allocator, in the same time.
    """
    if _ALLOCATOR_VARIABLE not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


logger = logging.getLogger(__name__)

_MAX_PRODUCER_BYTES = 32 << 20  # the greatest buffer of a producer, which fills while another writer blocks it


@dataclass(frozen=True)
class Environment:
    """The settings, the clock and the log of an application in this process.

    Parameters
    ----------
    config : Config
    clock : Clock
    log : Log
    admin : Admin
    process_id : str
        The name of this process, new for every start.
    settings : ThreadSettings
        The settings of stream threads.
    task_settings : TaskSettings
        The settings of tasks.
    assignments : AssignmentCounts
    """

    config: Config
    clock: Clock
    log: Log
    admin: Admin
    process_id: str
    settings: ThreadSettings
    task_settings: TaskSettings
    assignments: AssignmentCounts

    @property
    def application_id(self) -> str:
        """The setting `application.id`."""
        return self.config.application_id

    @property
    def default_reset(self) -> Reset | None:
        """The offset reset of sources that declare none."""
        return default_reset(self.config)

    @property
    def exactly_once(self) -> bool:
        """True if outputs, state and offsets are committed in one transaction."""
        return bool(self.config["processing.guarantee"] == "exactly_once_v2")

    def consumer(self, role: str) -> Consumer:
        """Create a consumer with the settings of a role: main, restore or global."""
        return self.log.consumer(consumer_settings(self.config, role))

    def producer(self, thread: int) -> Producer:
        """Create the producer of a thread, which is transactional under exactly once."""
        settings = {
            "client.id": self.settings.name,
            **self.config.prefixed("producer."),
            "delivery.report.only.error": True,  # `flush` reports success
            QUOTA_DELAYS: False,  # the thread waits between two rounds, where it can be stopped
        }
        if self.exactly_once:
            settings["transactional.id"] = transactional_id(self.application_id, self.process_id, thread)
        settings.setdefault("buffer.memory", min(_MAX_PRODUCER_BYTES, self.settings.buffered_bytes // 2))
        return self.log.producer(settings)


@dataclass(frozen=True)
class TopologyContext:
    """The topology on the topics that exist now.

    Parameters
    ----------
    layout : Layout
    global_tables : GlobalTables
    bounds : BoundedRun or None
        The ends of inputs in a bounded run. None if the run does not end.
    """

    layout: Layout
    global_tables: GlobalTables
    bounds: BoundedRun | None

    @property
    def aligned(self) -> frozenset[int]:
        """The sub-topologies whose tasks advance in time together."""
        return aligned_sub_topologies(self.layout)


@dataclass(frozen=True)
class StateContext:
    """The stores of this process.

    Parameters
    ----------
    folder : Path
    limits : StateLimits
        The memory limits of stores.
    rebuilds : Rebuilds
        Deletes damaged stores.
    on_restore : callable
        Called with the progress of restores.
    sensors : UpdaterSensors
        The sensors of state updaters.
    """

    folder: Path
    limits: StateLimits
    rebuilds: Rebuilds
    on_restore: OnRestore
    sensors: UpdaterSensors


@dataclass(frozen=True)
class RuntimeContext:
    """The parts that all threads of a running application share.

    Parameters
    ----------
    environment : Environment
    topology : TopologyContext
    state : StateContext
    connectors : Connectors
    """

    environment: Environment
    topology: TopologyContext
    state: StateContext
    connectors: Connectors

    @property
    def application(self) -> Application:
        """The values that are constant for all tasks."""
        environment = self.environment
        names = self.topology.layout.topic_names
        return Application(environment.application_id, environment.task_settings, environment.clock, names)


def open_context(
    topology: Topology,
    config: Config,
    clock: Clock,
    own_log: Log | None,
    on_restore: OnRestore,
    resources: ExitStack,
    *,
    end: RunEnd = RunEnd.NEVER,
    folder: Path | None = None,
) -> RuntimeContext:
    """Open the log, prepare topics and load global tables.

    Parameters
    ----------
    topology : Topology
    config : Config
    clock : Clock
    own_log : Log or None
        The log of the caller, who closes it. None to open the home in the configuration.
    on_restore : callable
    resources : ExitStack
        Receives everything that has to be closed.
    end : RunEnd
    folder : Path, optional
        The folder of the stores. Default: that of the application's first process.
    """
    refuse_half_forgotten(config)
    use_system_allocator()
    folder = folder or state_folder(config)
    log = own_log or resources.enter_context(home_of(config).open(config, clock=clock))
    admin = resources.enter_context(log.admin())
    topology_file = TopologyFile(folder)
    fingerprint = fingerprint_of(topology)
    topology_file.check(fingerprint, config.application_id, admin)
    if config.application_id not in admin.groups():
        topology_file.drop_waiting()
    ApplicationConnectors(topology, config.application_id).create_source_topics(admin)
    layout = prepare_topics(topology, config, admin)
    connectors = Connectors(topology, config, log, clock, resources)
    if end in (RunEnd.ONCE, RunEnd.INPUT):
        connectors.read_sources()
    _report_unmatched(unmatched(topology, layout), config, bounded=end is not RunEnd.NEVER)
    topology_file.accept(fingerprint)
    bounds = _bounds(layout, admin, config.application_id, end) if end is not RunEnd.NEVER else None
    environment = Environment(
        config=config,
        clock=clock,
        log=log,
        admin=admin,
        process_id=uuid.uuid4().hex[:16],
        settings=ThreadSettings.of(config),
        task_settings=TaskSettings.of(config),
        assignments=AssignmentCounts(),
    )
    state = StateContext(
        folder=folder,
        limits=StateLimits.of(MemoryShares.of(config)),
        rebuilds=Rebuilds(config.application_id, folder),
        on_restore=on_restore,
        sensors=UpdaterSensors(SampleWindows.of(config)),
    )
    tables = _open_global_tables(layout, environment, state, resources)
    return RuntimeContext(environment, TopologyContext(layout, tables, bounds), state, connectors)


def with_layout(context: RuntimeContext, layout: Layout, resources: ExitStack) -> RuntimeContext:
    """Return the context with another layout. Global tables with damaged stores are loaded again."""
    tables = context.topology.global_tables
    if tables.is_damaged:
        with suppress(CorruptStateError):
            tables.close()
        tables = _open_global_tables(layout, context.environment, context.state, resources)
    return replace(context, topology=replace(context.topology, layout=layout, global_tables=tables))


def _open_global_tables(
    layout: Layout, environment: Environment, state: StateContext, resources: ExitStack
) -> GlobalTables:
    config = environment.config
    tables = GlobalTables(
        layout.globals,
        state.folder / "global",
        Application.of(config, environment.clock, layout.topic_names),
        poll_s=config["poll.ms"] / 1000,
        limits=state.limits,
        consumer=resources.enter_context(environment.consumer("global")),
        admin=environment.admin,
    )
    resources.callback(tables.close)
    tables.load()
    return tables


def _report_unmatched(text: str | None, config: Config, *, bounded: bool) -> None:
    """Log a pattern without topics. In a bounded run, which cannot wait for topics, raise an error."""
    if text is not None and bounded:
        raise UnknownTopicError(text)
    if text is not None:
        age_ms = config["metadata.max.age.ms"]
        logger.warning("%s The topics are read again every %s ms (metadata.max.age.ms).", text, age_ms)


def consumer_settings(config: Config, role: str) -> dict[str, object]:
    """Return the settings of a consumer, without the offset reset, which tasks apply themselves.

    The main consumer has no offset reset, so that deleted records that it has not read raise an error.
    """
    client_id = config["client.id"] or config.application_id
    settings = {"client.id": client_id, **config.prefixed("consumer."), **config.prefixed(f"{role}.consumer.")}
    settings.pop("auto.offset.reset", None)
    return settings | ({"auto.offset.reset": "none"} if role == "main" else {})


def _bounds(layout: Layout, admin: Admin, group: str, end: RunEnd) -> BoundedRun:
    internal = set(layout.topic_names.values())
    external = sorted({source for task in layout.tasks for source in task.inputs if source.topic not in internal})
    ends = admin.end_offsets(external)
    if end is RunEnd.SETTLED:
        processed = admin.committed(group, external)
        inputs = [source for source in external if source.topic not in layout.through]
        ends |= {source: processed[source].offset if source in processed else 0 for source in inputs}

    def present_ends(sources: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return admin.end_offsets(sources, committed_only=False)

    return BoundedRun(layout, end is RunEnd.INPUT, ends, present_ends)
