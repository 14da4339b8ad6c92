"""`Manifests`: for each step, a file that lists the state version of every task; the log commits its digest.

Tasks write their state before the step is committed, in failed attempts too. When all tasks have reported, the driver
writes a manifest of their state versions, named by the digest of its content. The log's transaction commits this digest
with the rows and positions of the step. So rows, positions and state become valid together. Other files in the
checkpoint have no effect, and neither has a driver that the log has fenced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kstreams.errors import StateError
from kstreams.kernel.decoders import decode_json
from kstreams.runtime.spark.steps import EMPTY, NO_STEP, AppliedStep, StateVersion
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.tasks.step_folder import StepFolder
from kstreams.runtime.spark.tasks.step_plans import GlobalTable


class StepManifest(msgspec.Struct, frozen=True):
    """The state of an application after a step.

    Parameters
    ----------
    step : int
    parent : AppliedStep
        The step before this one.
    states : mapping of str to StateVersion
        By task: its state version; that of the parent if the task did not run.
    globals : mapping of int to GlobalTable
        By sub-topology: the offsets up to which a global table was read.
    """

    step: int = NO_STEP
    parent: AppliedStep = AppliedStep()
    states: dict[str, StateVersion] = {}
    globals: dict[int, GlobalTable] = {}

    def require_tasks(self, tasks: Mapping[int, int]) -> None:
        """Raise StateError if a sub-topology has state for another number of tasks than it has now."""
        for sub, count in tasks.items():
            task_names = {name for name in self.states if name.partition("_")[0] == str(sub)}
            if task_names and task_names != {f"{sub}_{partition}" for partition in range(count)}:
                raise StateError(
                    f"Sub-topology {sub} has state for {len(task_names)} tasks, but there are {count} now: "
                    "the number of partitions of its topics has changed. Start anew with --reset."
                )


class Manifests:
    """The manifests of one application.

    Parameters
    ----------
    storage : CheckpointStorage
    batches : int
        The number of batches whose manifests are retained. Those of the last two steps are always retained.
    """

    def __init__(self, storage: CheckpointStorage, batches: int = 0) -> None:
        self._storage = storage
        self._folder = StepFolder(storage, MANIFESTS)
        self._batches = batches
        self._last_step = AppliedStep()
        self._last_manifest = StepManifest()

    def get(self, step: AppliedStep) -> StepManifest:
        """Return the manifest of a committed step, or an empty manifest before the first step.

        Raises
        ------
        StateError
            If the manifest is missing or damaged.
        """
        if step.number == NO_STEP:
            return StepManifest()
        if (step.number, step.manifest) != (self._last_step.number, self._last_step.manifest):
            self._last_manifest = self._read(step)
            self._last_step = step
        return self._last_manifest

    def history(self, step: AppliedStep) -> Iterator[StepManifest]:
        """Yield the retained manifests from a step backwards."""
        names = set(self._storage.names(MANIFESTS))
        while step.number != NO_STEP and Path(self._folder.path(step.number, step.manifest)).name in names:
            yield (manifest := self._read(step))
            step = manifest.parent

    def publish(self, manifest: StepManifest) -> AppliedStep:
        """Write a manifest, delete those that are no longer retained, and return the step for the log to commit."""
        raw = msgspec.json.encode(manifest)
        applied = AppliedStep(manifest.step, _digest(raw))
        self._storage.write(self._folder.path(applied.number, applied.manifest), raw)
        oldest = min(self.get(manifest.parent).parent.number, applied.number - 2 * self._batches)
        self._folder.keep(applied.number, applied.manifest, oldest=oldest)
        self._last_step = applied
        self._last_manifest = manifest
        return applied

    def _read(self, step: AppliedStep) -> StepManifest:
        if not step.manifest:
            raise StateError(
                f"The state at {self._storage.location} was written by an earlier version of kstreams. Finish with "
                "that version, or start anew with --reset."
            )
        path = self._folder.path(step.number, step.manifest)
        location = self._storage.location_of(path)
        try:
            raw = self._storage.read(path)
        except FileNotFoundError as error:
            raise StateError(
                f"{location} is missing, the manifest of the state of step {step.number}. {_REMEDY}"
            ) from error
        if _digest(raw) != step.manifest:
            raise StateError(f"{location} is damaged: its content does not fit its digest. {_REMEDY}")
        return decode_json(raw, StepManifest)


MANIFESTS = "manifests"
_REMEDY = "Restore the file from a copy, or start anew with --reset."


def newest(states: Iterable[Mapping[str, StateVersion]]) -> dict[str, StateVersion]:
    """Return the state version with the highest number of each task."""
    versions: dict[str, StateVersion] = {}
    for by_task in states:
        for task, state_version in by_task.items():
            versions[task] = max(versions.get(task, EMPTY), state_version, key=lambda version: version.number)
    return dict(sorted(versions.items()))


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()
