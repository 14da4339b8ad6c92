"""`StateFiles`: the state of a task as files under the checkpoint, the changes of every step and some snapshots.

A version has a number (of a step and of a round in this step) and a digest over its changes, its owner and the version
before it. So a version identifies its whole history, and a file's name identifies its content: if two attempts at a
step differ, they write two files, and neither overwrites the other. The manifest of the step (`manifests.py`) says
which version is valid, not the presence of a file.

A file consists of magic bytes and format version, the content (`_Content`) as MessagePack, and a digest of both. The
digest is checked before anything is decoded, and a file of another checkpoint, task or store is refused.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.kernel.decoders import msgpack_decoder
from kstreams.processor.topology.fingerprint import format_of
from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.steps import EMPTY, MAX_ROUNDS, StateVersion, version_number
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.state.api import Changes
from kstreams.state.task_state import encoded_changes

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
_HEAD = struct.pack("<4sH", b"KSST", FORMAT_VERSION)
_DIGEST_BYTES = 16
_CHANGES = "changes"
_SNAPSHOT = "snapshot"
TaskMetadata = Mapping[str, int]

NEXT_OFFSET = "next_offset:"
"""The prefix of the entries of task metadata that count the rows of repartition topics."""


class StateFile(NamedTuple):
    """The content of one file: the changes from the parent to a version, or a snapshot of a version."""

    version: StateVersion
    parent: StateVersion
    metadata: TaskMetadata
    stores: dict[str, Changes]


class StateOwner(NamedTuple):
    """The task that owns state files.

    Parameters
    ----------
    application : str
    checkpoint : str
        The id of the checkpoint.
    task : str
        `<sub-topology>_<partition>`.
    formats : mapping of str to str
        By store: the format of its bytes.
    """

    application: str
    checkpoint: str
    task: str
    formats: Mapping[str, str] = {}


class _Content(msgspec.Struct):
    application: str
    checkpoint: str
    task: str
    kind: str
    number: int
    before: StateVersion
    """The version before the changes; for a snapshot, the version of the snapshot."""
    metadata: dict[str, int]
    formats: dict[str, str]
    stores: dict[str, bytes]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgpack_decoder(_Content)


class StateFiles:
    """The files of one task.

    Snapshots are not part of the history: a worker may write one of any version. If a snapshot is damaged, older files
    replace it.

    Parameters
    ----------
    storage : CheckpointStorage
    owner : StateOwner
    """

    def __init__(self, storage: CheckpointStorage, owner: StateOwner) -> None:
        self._storage = storage
        self._owner = owner
        self._folder = f"state/{owner.task}"

    @property
    def name(self) -> str:
        """The ids of checkpoint and task."""
        return f"{self._owner.checkpoint}/{self._owner.task}"

    def write_changes(
        self, number: int, parent: StateVersion, metadata: TaskMetadata, changes: Mapping[str, Changes]
    ) -> StateVersion:
        """Write the changes from the parent to the version with this number, and return the new version."""
        raw = self._encoded(_CHANGES, number, parent, metadata, changes)
        version = StateVersion(number, bytes(raw[-_DIGEST_BYTES:]))
        self._storage.write(self._path(version, _CHANGES), raw)
        return version

    def write_snapshot(self, version: StateVersion, metadata: TaskMetadata, stores: Mapping[str, Changes]) -> None:
        """Write all rows of a version."""
        raw = self._encoded(_SNAPSHOT, version.number, version, metadata, stores)
        self._storage.write(self._path(version, _SNAPSHOT), raw)

    def since(self, base: StateVersion, target: StateVersion) -> list[StateFile] | None:
        """Return the changes from one version to a later one, oldest first.

        Return None if a file is missing or damaged, or the later version does not continue the earlier one.
        """
        files: list[StateFile] = []
        version = target
        while version != base:
            if version.number <= base.number:
                return None
            try:
                files.append(self._changes(version))
            except StateError:
                return None
            version = files[-1].parent
        return files[::-1]

    def rebuild(self, target: StateVersion) -> list[StateFile]:
        """Return the files that make up a version, oldest first: a snapshot, if there is one, and the changes after it.

        Raises
        ------
        StateError
            If a file is missing or damaged or has another owner, and no other files replace it.
        """
        names = set(self._storage.names(self._folder))
        files: list[StateFile] = []
        damage: StateError | None = None
        version = target
        while version != EMPTY:
            if _name(version, _SNAPSHOT) in names:
                try:
                    return [self._read(version, _SNAPSHOT), *files[::-1]]
                except StateError as error:
                    logger.warning("%s The state is rebuilt from the files before it.", error)
                    damage = damage or error
            try:
                files.append(self._changes(version))
            except StateError as error:
                if damage is not None:
                    raise damage from error
                raise
            version = files[-1].parent
        return files[::-1]

    def metadata_at(self, version: StateVersion) -> TaskMetadata:
        """Return the task metadata of a version."""
        return {} if version == EMPTY else self._changes(version).metadata

    def is_snapshot_due(self, max_files: int) -> bool:
        """Return True if the changes since the last snapshot exceed its size or are in more than `max_files` files."""
        sizes = self._storage.sizes(self._folder)
        newest = max((_number(name) for name in sizes if name.endswith(_SNAPSHOT)), default=EMPTY.number)
        snapshot_bytes = sum(
            size for name, size in sizes.items() if name.endswith(_SNAPSHOT) and _number(name) == newest
        )
        later = [size for name, size in sizes.items() if _number(name) > newest]
        return len(later) > max_files or sum(later) >= snapshot_bytes

    def prune(self, oldest: int) -> None:
        """Delete the files of versions with a number below this one."""
        names = self._storage.names(self._folder)
        self._storage.delete(f"{self._folder}/{name}" for name in names if _number(name) < oldest)

    def _changes(self, version: StateVersion) -> StateFile:
        return self._read(version, _CHANGES)

    def _path(self, version: StateVersion, kind: str) -> str:
        return f"{self._folder}/{_name(version, kind)}"

    def _encoded(
        self, kind: str, number: int, before: StateVersion, metadata: TaskMetadata, stores: Mapping[str, Changes]
    ) -> bytearray:
        owner = self._owner
        formats = {name: owner.formats.get(name, "") for name in sorted(stores)}
        bodies = {name: bytes(encoded_changes([changes])) for name, changes in sorted(stores.items())}
        content = _Content(
            owner.application,
            owner.checkpoint,
            owner.task,
            kind,
            number,
            before,
            dict(metadata),
            formats,
            bodies,
        )
        raw = bytearray(_HEAD)
        _ENCODER.encode_into(content, raw, len(raw))
        raw += _digest(raw)
        return raw

    def _read(self, version: StateVersion, kind: str) -> StateFile:
        path = self._path(version, kind)
        location = self._storage.location_of(path)
        try:
            raw = self._storage.read(path)
        except FileNotFoundError as error:
            raise StateError(f"{location} is missing: the checkpoint is incomplete. {_REMEDY}") from error
        content = _decoded_content(raw, location)
        self._require_owner(content, location)
        file_version = version if kind == _SNAPSHOT else StateVersion(content.number, raw[-_DIGEST_BYTES:])
        if file_version != version or content.kind != kind or (kind == _SNAPSHOT and content.before != version):
            raise StateError(
                f"{location} holds {content.kind} of {_step_and_round(content.number)}, not {kind} of "
                f"{_step_and_round(version.number)} as its name says: it was put in the place of another file. "
                f"{_REMEDY}"
            )
        stores = {store: _decoded_changes(body) for store, body in content.stores.items()}
        return StateFile(file_version, content.before, content.metadata, stores)

    def _require_owner(self, content: _Content, location: str) -> None:
        owner = self._owner
        for attribute, actual, expected in (
            ("application", content.application, owner.application),
            ("checkpoint", content.checkpoint, owner.checkpoint),
            ("task", content.task, owner.task),
        ):
            if actual != expected:
                raise StateError(f"{location} is state of the {attribute} {actual}, not of {expected}. {_REMEDY}")
        for store, expected in owner.formats.items():
            if (file_format := content.formats.get(store, expected)) != expected:
                raise StateError(f"{location} holds the store {store!r} as {file_format}, not as {expected}. {_REMEDY}")


_REMEDY = "Restore the file from a copy, or start anew with --reset."


def state_files(program: Program, sub_topology: int, partition: int) -> StateFiles:
    """Return the state files of a task of an application."""
    formats = {builder.name: format_of(builder) for builder in program.sub_topology(sub_topology).stores}
    task = str(TaskId(sub_topology, partition))
    return StateFiles(program.storage, StateOwner(program.application_id, program.checkpoint_id, task, formats))


def _name(version: StateVersion, kind: str) -> str:
    """Return the name of a file.

    Examples
    --------
    >>> _name(StateVersion(4 * MAX_ROUNDS, bytes(16)), "changes")
    '000000000004-00000-00000000000000000000000000000000.changes'
    """
    step, round_number = divmod(version.number, MAX_ROUNDS)
    return f"{step:012d}-{round_number:05d}-{version.digest.hex()}.{kind}"


def _number(name: str) -> int:
    step, round_number, _ = name.split("-", 2)
    return version_number(int(step), int(round_number))


def _step_and_round(number: int) -> str:
    return "step {}, round {}".format(*divmod(number, MAX_ROUNDS))


def _digest(raw: bytes | bytearray | memoryview) -> bytes:
    return hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).digest()


def _decoded_content(raw: bytes, location: str) -> _Content:
    """Decode a file. Raises StateError if its content does not fit its digest."""
    content = memoryview(raw)[:-_DIGEST_BYTES]
    if not raw.startswith(_HEAD) or _digest(content) != raw[-_DIGEST_BYTES:]:
        raise StateError(f"{location} is damaged: its content does not fit its digest. {_REMEDY}")
    return _DECODER.decode(content[len(_HEAD) :])


def _decoded_changes(raw: bytes) -> Changes:
    with pa.ipc.open_stream(pa.py_buffer(raw)) as reader:
        batch = reader.read_next_batch()
    return Changes(batch["key"], batch["value"], batch["timestamp"])
