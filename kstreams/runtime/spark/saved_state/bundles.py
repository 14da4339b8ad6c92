"""Export and import of the state of an application between two steps as a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kstreams.config import Config
from kstreams.errors import StateError, TopologyError
from kstreams.kernel.clock import SystemClock
from kstreams.log.api import Admin, Log
from kstreams.processor.topology.bundle_check import require_fitting
from kstreams.processor.topology.fingerprint import encode_fingerprint, fingerprint_of
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.exchange.rows import positions_of
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.io.offset_reset import starting_offsets
from kstreams.runtime.spark.io.position_commits import PositionCommits
from kstreams.runtime.spark.prepared import PlannedApplication, PreparedApplication, plan_application, prepare
from kstreams.runtime.spark.program import group_of
from kstreams.runtime.spark.reset import delete_application
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import EMPTY, AppliedStep, StateVersion, batch_step, end_step, version_number
from kstreams.runtime.spark.storage.opening import open_storage
from kstreams.runtime.spark.tasks.manifests import MANIFESTS, Manifests, StepManifest
from kstreams.runtime.spark.tasks.snapshots import merged_stores
from kstreams.runtime.spark.tasks.state_files import NEXT_OFFSET, state_files
from kstreams.state.bundle import Bundle, Origin, TaskRows, by_topic, require_free, write_bundle

_FIRST_STEP = batch_step(0)
"""The number of the step that an import commits."""


def write_state(topology: Topology, config: Config, log: Log, folder: Path) -> Bundle:
    """Write the state of an application after its last step.

    Raises
    ------
    StateError
        If there is no state, or the folder is not free.
    TopologyError
        If Spark itself keeps a part of the state, or the topology does not fit the state.
    """
    require_free(folder)
    _require_in_tasks(plan_application(topology, config, log))
    name = config.application_id
    with log.admin() as admin:
        if group_of(name) not in admin.groups():
            raise StateError(f"The application {name!r} has processed nothing on Spark: there is no state.")
    prepared = prepare(topology, config, log)
    steps = CommittedSteps(log, prepared.group, prepared.sources, prepared.checkpoint.id)
    last = steps.last()
    if last == AppliedStep():
        raise StateError(
            f"The log has no step of the checkpoint {prepared.checkpoint.storage.location}: the checkpoint or the log "
            "was replaced. Use both as they were, or start anew with --reset."
        )
    fingerprint = encode_fingerprint(fingerprint_of(topology)).decode()
    has_ended = last.number == end_step(last.number)
    origin = Origin(name, "spark", fingerprint, by_topic(steps.positions()), has_ended)
    return write_bundle(folder, origin, _rows(prepared, last))


def read_state(topology: Topology, config: Config, log: Log, bundle: Bundle, *, replace: bool) -> None:
    """Import a bundle as the state of an application. The import is checked before any change and committed as one.

    Parameters
    ----------
    bundle : Bundle
    replace : bool
        True to delete the existing state of the application.

    Raises
    ------
    StateError
        If the application already has state, or the bundle is damaged or belongs to another application.
    TopologyError
        If the bundle does not fit the topology, or Spark itself would keep a part of the state.
    """
    planned = plan_application(topology, config, log)
    _require_in_tasks(planned)
    with log.admin() as admin:
        require_fitting(bundle, topology, planned.layout, config.application_id, admin)
        if not replace:
            _require_new(config, admin)
    with PositionCommits(log, group_of(config.application_id), SystemClock()) as commits:  # a running driver is fenced
        delete_application(config, log)
        prepared = prepare(topology, config, log)
        starts = positions_of(starting_offsets(prepared.program, log, SystemClock()))
        steps = CommittedSteps(log, prepared.group, prepared.sources, prepared.checkpoint.id, starts)
        offsets = bundle.origin.offsets
        positions = {source: offsets.get(source, start) for source, start in steps.positions().items()}
        number = end_step(_FIRST_STEP) if bundle.origin.ended else _FIRST_STEP
        manifest = StepManifest(number, AppliedStep(), dict(_states(prepared, bundle, number)))
        applied = Manifests(prepared.checkpoint.storage).publish(manifest)
        commits.commit(steps.offsets(applied, positions))


def _require_in_tasks(planned: PlannedApplication) -> None:
    if planned.plan.queries:
        numbers = ", ".join(map(str, sorted(planned.plan.queries)))
        raise TopologyError(
            f"Spark itself keeps the state of the sub-topologies {numbers}, so the state can be neither exported nor "
            "imported: run with spark.kstreams.path = auto."
        )


def _require_new(config: Config, admin: Admin) -> None:
    settings = SparkSettings.of(config)
    name = config.application_id
    if group_of(name) in admin.groups() or open_storage(settings.checkpoint_of(name), settings.conf).names(MANIFESTS):
        raise StateError(
            f"The application {name!r} has state on Spark already: import with --replace to delete it, or give the "
            "application another id."
        )


def _states(prepared: PreparedApplication, bundle: Bundle, step: int) -> Iterator[tuple[str, StateVersion]]:
    """Write the rows of each task as its first changes, and yield the task and its state version."""
    for task in bundle.tasks:
        sub, partition = TaskId.parse(task)
        if sub in prepared.in_tasks:
            rows = bundle.rows(task)
            files = state_files(prepared.program, sub, partition)
            yield task, files.write_changes(version_number(step), EMPTY, rows.metadata, rows.stores)


def _rows(prepared: PreparedApplication, last: AppliedStep) -> Iterator[TaskRows]:
    program = prepared.program
    for task, version in Manifests(prepared.checkpoint.storage).get(last).states.items():
        number, partition = TaskId.parse(task)
        sub = program.sub_topology(number)
        files = state_files(program, number, partition)
        if not sub.is_global:
            metadata = {
                name: value for name, value in files.metadata_at(version).items() if not name.startswith(NEXT_OFFSET)
            }
            stores = merged_stores(sub.stores, files.rebuild(version)) if sub.stores else {}
            yield TaskRows(task, metadata, stores)
