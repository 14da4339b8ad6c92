"""Manifests: what the state of a step is, by task. The log names the manifest of the step that it commits last.

Tasks write their state before the step counts, an attempt that fails as well as the one that succeeds. When all have
reported, the driver publishes a manifest of the versions that they made, under the digest of its content; the digest
travels in the log's transaction with the rows and positions of the step. So rows, positions and state become valid
together, whatever lies in the checkpoint beside that, and a driver that the log has fenced makes nothing valid.
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
    """What a step left.

    Parameters
    ----------
    step : int
    parent : AppliedStep
        The step before it.
    states : mapping of str to StateVersion
        By task; a task that did not run has what the parent says.
    globals : mapping of int to GlobalTable
        By sub-topology: how far global tables were read.
    """

    step: int = NO_STEP
    parent: AppliedStep = AppliedStep()
    states: dict[str, StateVersion] = {}
    globals: dict[int, GlobalTable] = {}

    def require_tasks(self, tasks: Mapping[int, int]) -> None:
        """Raise StateError where a sub-topology has state, but not for as many tasks as it has now."""
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
        For how many steps back manifests are kept; those of the last two are in any case.
    """

    def __init__(self, storage: CheckpointStorage, batches: int = 0) -> None:
        self._storage = storage
        self._folder = StepFolder(storage, MANIFESTS)
        self._batches = batches
        self._last = AppliedStep(), StepManifest()

    def get(self, step: AppliedStep) -> StepManifest:
        """The manifest of a step that was applied; an empty one before the first.

        Raises
        ------
        StateError
            When it is missing or damaged.
        """
        if step[:2] != self._last[0][:2] and step.number != NO_STEP:
            self._last = step, self._read(step)
        return self._last[1] if step.number != NO_STEP else StepManifest()

    def history(self, step: AppliedStep) -> Iterator[StepManifest]:
        """The manifests from a step back, as far as they are kept."""
        names = set(self._storage.names(MANIFESTS))
        while step.number != NO_STEP and Path(self._folder.path(step.number, step.manifest)).name in names:
            yield (manifest := self._read(step))
            step = manifest.parent

    def publish(self, manifest: StepManifest) -> AppliedStep:
        """Write a manifest; what the log is to commit. Those go that nobody may ask for any more."""
        raw = msgspec.json.encode(manifest)
        applied = AppliedStep(manifest.step, _digest(raw))
        self._storage.write(self._folder.path(applied.number, applied.manifest), raw)
        oldest = min(self.get(manifest.parent).parent.number, applied.number - 2 * self._batches)
        self._folder.keep(applied.number, applied.manifest, oldest=oldest)
        self._last = applied, manifest
        return applied

    def _read(self, step: AppliedStep) -> StepManifest:
        if not step.manifest:
            raise StateError(
                f"The state at {self._storage.location} was written by an earlier version of kstreams. Finish with "
                "that version, or start anew with --reset."
            )
        place = self._storage.place(self._folder.path(step.number, step.manifest))
        try:
            raw = self._storage.read(self._folder.path(step.number, step.manifest))
        except FileNotFoundError as error:
            raise StateError(
                f"{place} is missing, which says what the state of step {step.number} is. {_CURE}"
            ) from error
        if _digest(raw) != step.manifest:
            raise StateError(f"{place} is damaged: its content does not fit its digest. {_CURE}")
        return decode_json(raw, StepManifest)


MANIFESTS = "manifests"
_CURE = "Restore the file from a copy, or start anew with --reset."


def newest(states: Iterable[Mapping[str, StateVersion]]) -> dict[str, StateVersion]:
    """Of every task what was kept of its last round."""
    versions: dict[str, StateVersion] = {}
    for by_task in states:
        for task, state_version in by_task.items():
            versions[task] = max(versions.get(task, EMPTY), state_version, key=lambda version: version.number)
    return dict(sorted(versions.items()))


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()
