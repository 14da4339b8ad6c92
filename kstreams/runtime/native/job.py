"""`Job`: the parts that all threads of a running application share, and `open_job`, which creates them."""

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
from kstreams.metrics.samples import SampleWindows
from kstreams.metrics.sensors import UpdaterSensors
from kstreams.processor.context.application import Application
from kstreams.processor.context.settings import TaskSettings
from kstreams.processor.topology.fingerprint import fingerprint_of
from kstreams.processor.topology.layout import Layout, unmatched
from kstreams.processor.topology.offset_reset import Reset, default_reset
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.bounded_run import BoundedRun, RunEnd, aligned_sub_topologies
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


class Handovers:
    """Counts how often each task was assigned to this process.

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
        """Note tasks that are newly assigned to this process."""
        self._given = self._given + Counter(tasks)  # others may read it meanwhile

    def counts(self) -> Mapping[TaskId, int]:
        """Return how often each task was assigned."""
        return self._given

    @property
    def again(self) -> int:
        """The number of assignments of tasks that the process had had before."""
        return self._given.total() - len(self._given)


_CHOICE = "ARROW_DEFAULT_MEMORY_POOL"


def give_back_memory() -> None:
    """Use the system allocator for Arrow, unless `ARROW_DEFAULT_MEMORY_POOL` names another one.

    Arrow's default allocator retains freed memory per thread. With a budget of 64 MiB, a run used up to 1.7 times the
    budget, and 0.8 times with the system allocator, in the same time.
    """
    if _CHOICE not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())


logger = logging.getLogger(__name__)

_PRODUCER_BYTES = 32 << 20  # the most that a producer buffers while another writer blocks it


@dataclass(frozen=True)
class Job:
    """The parts that all threads of a running application share.

    Parameters
    ----------
    config : Config
    clock : Clock
    log : Log
    admin : Admin
    layout : Layout
    state_folder : Path
    settings : ThreadSettings
        The settings of stream threads.
    task_settings : TaskSettings
        The settings of tasks.
    limits : StateLimits
        The memory limits of stores.
    global_tables : GlobalTables
    bounds : BoundedRun or None
        The ends of inputs in a bounded run. None if the run does not end.
    aligned : frozenset of int
        The sub-topologies whose tasks advance in time together.
    on_restore : callable
        Called with the progress of restores.
    rebuilds : Rebuilds
        Deletes damaged stores.
    handovers : Handovers
        Counts how often tasks were assigned to this process.
    updater_sensors : UpdaterSensors
        The sensors of state updaters.
    process : str
        The name of this process, new for every start.
    """

    config: Config
    clock: Clock
    log: Log
    admin: Admin
    layout: Layout
    state_folder: Path
    settings: ThreadSettings
    task_settings: TaskSettings
    limits: StateLimits
    global_tables: GlobalTables
    bounds: BoundedRun | None
    aligned: frozenset[int]
    on_restore: OnRestore
    rebuilds: Rebuilds
    handovers: Handovers
    updater_sensors: UpdaterSensors
    process: str

    @property
    def application(self) -> Application:
        """The part that is constant for all tasks."""
        return Application(self.config.application_id, self.task_settings, self.clock, self.layout.topic_names)

    @property
    def default_reset(self) -> Reset | None:
        """The offset reset of sources that declare none."""
        return default_reset(self.config)

    @property
    def exactly_once(self) -> bool:
        """True if outputs, state and offsets are committed as one."""
        return bool(self.config["processing.guarantee"] == "exactly_once_v2")

    def consumer(self, role: str) -> Consumer:
        """Create a consumer with the settings of a role: main, restore or global."""
        return self.log.consumer(consumer_settings(self.config, role))

    def producer(self, thread: int) -> Producer:
        """Create the producer of a thread, which is transactional under exactly once."""
        settings = {**self.config.prefixed("producer."), "delivery.report.only.error": True}  # `flush` reports success
        if self.exactly_once:
            settings["transactional.id"] = transactional_id(self.config.application_id, self.process, thread)
        settings.setdefault("buffer.memory", min(_PRODUCER_BYTES, self.settings.buffered_bytes // 2))
        return self.log.producer(settings)


def open_job(
    topology: Topology,
    config: Config,
    clock: Clock,
    given_log: Log | None,
    on_restore: OnRestore,
    resources: ExitStack,
    *,
    end: RunEnd = RunEnd.NEVER,
    folder: Path | None = None,
) -> Job:
    """Open the log, prepare topics and load global tables.

    Parameters
    ----------
    resources : ExitStack
        Receives everything that has to be closed.
    folder : Path, optional
        The folder of the stores. Default: that of the application's first process.
    """
    refuse_half_forgotten(config)
    give_back_memory()
    folder = folder or state_folder(config)
    log = given_log or resources.enter_context(home_of(config).open(config, clock=clock))
    admin = resources.enter_context(log.admin())
    topology_file = TopologyFile(folder)
    shape = fingerprint_of(topology)
    topology_file.check(shape, config.application_id, admin)
    if config.application_id not in admin.groups():
        topology_file.drop_waiting()
    layout = prepare_topics(topology, config, admin)
    _report_unmatched(unmatched(topology, layout), config, bounded=end is not RunEnd.NEVER)
    topology_file.accept(shape)
    bounds = _bounds(layout, admin, config.application_id, end) if end is not RunEnd.NEVER else None
    limits = StateLimits.of(MemoryShares.of(config))
    tables = _open_global_tables(
        layout, config, resources, folder=folder, limits=limits, clock=clock, log=log, admin=admin
    )
    return Job(
        config=config,
        clock=clock,
        log=log,
        admin=admin,
        layout=layout,
        state_folder=folder,
        settings=ThreadSettings.of(config),
        task_settings=TaskSettings.of(config),
        limits=limits,
        global_tables=tables,
        bounds=bounds,
        aligned=aligned_sub_topologies(layout),
        on_restore=on_restore,
        rebuilds=Rebuilds(config.application_id, folder),
        handovers=Handovers(),
        updater_sensors=UpdaterSensors(SampleWindows.of(config)),
        process=uuid.uuid4().hex[:16],
    )


def with_layout(job: Job, layout: Layout, resources: ExitStack) -> Job:
    """Return the job with another layout. Global tables with damaged stores are loaded again."""
    if not job.global_tables.is_damaged:
        return replace(job, layout=layout)
    with suppress(CorruptStateError):
        job.global_tables.close()
    tables = _open_global_tables(
        layout,
        job.config,
        resources,
        folder=job.state_folder,
        limits=job.limits,
        clock=job.clock,
        log=job.log,
        admin=job.admin,
    )
    return replace(job, layout=layout, global_tables=tables)


def _open_global_tables(
    layout: Layout,
    config: Config,
    resources: ExitStack,
    *,
    folder: Path,
    limits: StateLimits,
    clock: Clock,
    log: Log,
    admin: Admin,
) -> GlobalTables:
    reader = resources.enter_context(log.consumer(consumer_settings(config, "global")))
    application = Application.of(config, clock, layout.topic_names)
    tables = GlobalTables(
        layout.globals,
        folder / "global",
        application,
        poll_s=config["poll.ms"] / 1000,
        limits=limits,
        consumer=reader,
        admin=admin,
    )
    resources.callback(tables.close)
    tables.load()
    return tables


def _report_unmatched(text: str | None, config: Config, *, bounded: bool) -> None:
    """Warn of a pattern without topics. In a bounded run, which cannot wait for topics, raise an error."""
    if text is not None and bounded:
        raise UnknownTopicError(text)
    if text is not None:
        logger.warning("%s It is looked for every %s ms (metadata.max.age.ms).", text, config["metadata.max.age.ms"])


def consumer_settings(config: Config, role: str) -> dict[str, object]:
    """Return the settings of a consumer, without the offset reset, which tasks apply themselves.

    The main consumer does not skip records that were deleted before it read them.
    """
    settings = {**config.prefixed("consumer."), **config.prefixed(f"{role}.consumer.")}
    settings.pop("auto.offset.reset", None)
    return settings | ({"auto.offset.reset": "none"} if role == "main" else {})


def _bounds(layout: Layout, admin: Admin, group: str, end: RunEnd) -> BoundedRun:
    internal = set(layout.topic_names.values())
    external = sorted({source for task in layout.tasks for source in task.inputs if source.topic not in internal})
    ends = admin.end_offsets(external)
    if end is RunEnd.SETTLED:
        processed = admin.committed(group, external)
        new = [source for source in external if source.topic not in layout.through]
        ends |= {source: processed[source].offset if source in processed else 0 for source in new}

    def ends_now(sources: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return admin.end_offsets(sources, committed_only=False)

    return BoundedRun(layout, end is RunEnd.INPUT, ends, ends_now)
