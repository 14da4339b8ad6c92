"""`StepStores`: the stores of an application on Spark after a step, read from its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import pyarrow as pa

from kstreams.config import Config
from kstreams.errors import StateError
from kstreams.kernel.durations import Time
from kstreams.log import home_of
from kstreams.log.api import Log
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.processor.topology.topology import built
from kstreams.runtime.spark.io.committed_steps import CommittedSteps
from kstreams.runtime.spark.prepared import PreparedApplication, prepare
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import AppliedStep
from kstreams.runtime.spark.tasks.local_state import opened_state
from kstreams.runtime.spark.tasks.manifests import Manifests, StepManifest
from kstreams.runtime.spark.tasks.state_files import state_files
from kstreams.state.read_only_store import CommittedPartition, ReadOnlyStore
from kstreams.state.store_builder import store_named
from kstreams.state.tables.sql import answer


class StepStores:
    """The stores after one step, rebuilt in a temporary folder. The application may run meanwhile.

    Parameters
    ----------
    topology : StreamsBuilder, Topology, or a function that returns one
    config : Config or mapping
        The configuration of the application.
    step : int, optional
        The number of the step, from 0; by default the last step.

    Raises
    ------
    StateError
        If no step was committed, or the checkpoint no longer holds the step.
    """

    def __init__(self, topology: object, config: Config | Mapping[str, object] | None, step: int | None = None) -> None:
        settings = Config.of(config)
        registry = ApplicationRegistry(settings)
        declared_topology = built(topology, settings, "kstreams.spark.StepStores")
        prefix = SparkSettings.of(settings).prefix
        named = declared_topology.with_connector_topics(settings.application_id, prefix)
        self._topology = named.bound(settings, registry)
        with home_of(settings).open(settings) as log:
            self._prepared = prepare(self._topology, settings, log)
            self._manifest = _manifest(self._prepared, log, step)
        self._resources = ExitStack()
        self._partitions = dict[str, CommittedPartition]()
        self._resources.callback(registry.close)
        self._folder = Path(self._resources.enter_context(TemporaryDirectory(prefix="kstreams-step-")))

    @property
    def step(self) -> int:
        """The number of the step."""
        return self._manifest.step // 2

    def store(self, name: str) -> ReadOnlyStore:
        """Return a store with the read methods of its kind, over all its partitions.

        Raises
        ------
        StateError
            If there is no store of this name, Spark itself keeps it, or its kind cannot be read from bytes.
        """
        builder = store_named(self._topology.stores, name)
        (sub,) = (sub for sub in self._topology.sub_topologies if builder in sub.stores)
        if sub.id in self._prepared.plan.in_queries:
            raise StateError(
                f"the store {name!r} is in the state of Spark's own query: run with spark.kstreams.path=auto"
            )
        if not builder.kind.reads_committed:
            raise StateError(f"the store {name!r} is of a kind that is read only while the application runs")
        tasks = sorted(task for task in map(TaskId.parse, self._manifest.states) if task.sub_topology == sub.id)
        store: ReadOnlyStore = builder.read_only([self._partition(name, task) for task in tasks])
        return store

    def sql(self, query: str, as_of: Time | None = None) -> pa.Table:
        """Return the result of a SELECT by DuckDB; each store is a table of its name, as in `KafkaStreams.sql`."""
        return answer(query, self._topology.stores, lambda name: self.store(name).to_arrow(as_of))

    def close(self) -> None:
        """Close the stores and delete the folder."""
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _partition(self, name: str, task: TaskId) -> CommittedPartition:
        """Return one store of a task, rebuilt from the state files."""
        folder = f"{task}-{name}"
        program = self._prepared.program
        if folder not in self._partitions:
            builder = replace(self._topology.stores[name], store="rocksdb")
            files = state_files(program, task.sub_topology, task.partition)
            version = self._manifest.states[str(task)]
            path = self._folder / folder
            opened = opened_state(path, files, [builder], version, caching=False, limits=program.limits)
            stores = self._resources.enter_context(opened).stores
            self._partitions[folder] = CommittedPartition(task.partition, stores.committed, name)
        return self._partitions[folder]


def _manifest(prepared: PreparedApplication, log: Log, step: int | None) -> StepManifest:
    last = CommittedSteps(log, prepared.group, prepared.sources, prepared.checkpoint.id).last()
    if last == AppliedStep():
        raise StateError(f"The application {prepared.program.application_id!r} has processed nothing on Spark.")
    manifests = list(Manifests(prepared.checkpoint.storage).history(last))
    for manifest in manifests:
        if step is None or manifest.step // 2 == step:
            return manifest
    retained = f"{manifests[-1].step // 2} to {manifests[0].step // 2}" if manifests else "none"
    raise StateError(
        f"The checkpoint {prepared.checkpoint.storage.location} does not keep step {step}: it keeps {retained}. "
        "spark.kstreams.snapshot.every sets how many steps it keeps."
    )
