"""State of a task as files under the checkpoint: for every step the changes, now and then a snapshot.

A version is named by its number (a step, and a round in it) and the digest of its content, and names the version before
it, so that a chain of files either is the history of one task or is refused. Writing is idempotent: a step that is run
again writes the same bytes under the same name. Nothing of a body reaches pyarrow before its digest is checked.

File: header (`HEADER`, ended by its CRC32C), metadata and one Arrow IPC stream per store.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import google_crc32c
import msgspec
import pyarrow as pa
from pyarrow import fs

from kstreams.errors import StateError
from kstreams.private import make_private_on
from kstreams.runtime.spark.steps import MAX_ROUNDS, NO_STEP, version_number
from kstreams.state.api import Changes

MAGIC = b"KSST"
FORMAT_VERSION = 1
# magic, format version, number, number and digest of the version before, length and digest of the body
HEADER = struct.Struct("<4sHqq16sQ16s")
CHECKSUM = struct.Struct("<I")
TaskMetadata = Mapping[str, int]


class StateVersion(NamedTuple):
    """One state of one task: the step and round that made it, as a number, and the digest of what they changed."""

    number: int
    digest: bytes


EMPTY = StateVersion(version_number(NO_STEP), bytes(16))
"""The state before the first step."""


class StateFile(NamedTuple):
    """What one file holds."""

    version: StateVersion
    parent: StateVersion
    metadata: TaskMetadata
    stores: dict[str, Changes]


class _Body(msgspec.Struct):
    metadata: dict[str, int] = msgspec.field(name="memo")
    stores: dict[str, bytes]


_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Body).decode
_IPC = pa.ipc.IpcWriteOptions(compression="lz4")
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])


class StateFiles:
    """The files of one task.

    Parameters
    ----------
    checkpoint : str
        Absolute path or URI of a folder that driver and executors share.
    task : str
        `<sub-topology>_<partition>`.
    """

    def __init__(self, checkpoint: str, task: str) -> None:
        self._fs, root = fs.FileSystem.from_uri(checkpoint)
        self._folder = f"{root}/state/{task}"

    def write_changes(
        self, at: int, parent: StateVersion, metadata: TaskMetadata, changes: Mapping[str, Changes]
    ) -> StateVersion:
        """Write what the version with the number `at` changes in its parent; the new version."""
        return self._write(self._changes_path(at), at, parent, metadata, changes)

    def write_snapshot(self, version: StateVersion, metadata: TaskMetadata, stores: Mapping[str, Changes]) -> None:
        """Write everything that a version holds, and delete the files that only older versions need."""
        self._write(self._snapshot_path(version.number), version.number, version, metadata, stores)
        self._prune(version.number)

    def version_at(self, at: int) -> StateVersion:
        """The version with a number; raises StateError when it is missing."""
        return EMPTY if at == EMPTY.number else self._header(self._changes_path(at))[0]

    def metadata_at(self, version: StateVersion) -> TaskMetadata:
        """The task metadata that was kept with a version."""
        return {} if version == EMPTY else self._read(self._changes_path(version.number)).metadata

    def since(self, known: StateVersion, wanted: StateVersion) -> list[StateFile] | None:
        """The changes from one version to a later one, oldest first; None when they are not one history."""
        found: list[StateFile] = []
        at = wanted
        while at != known:
            if at.number <= known.number or not self._exists(self._changes_path(at.number)):
                return None
            file = self._read(self._changes_path(at.number))
            self._require(file.version == at, at)
            found.append(file)
            at = file.parent
        return found[::-1]

    def rebuild(self, wanted: StateVersion) -> list[StateFile]:
        """A snapshot (or nothing) and the changes after it: all that makes up a version, oldest first."""
        found: list[StateFile] = []
        at = wanted
        while at != EMPTY:
            snapshot = self._snapshot_path(at.number)
            if self._exists(snapshot):
                found.append(self._read(snapshot))
                self._require(found[-1].parent == at, at)
                break
            found.append(self._read(self._changes_path(at.number)))
            self._require(found[-1].version == at, at)
            at = found[-1].parent
        return found[::-1]

    def _changes_path(self, at: int) -> str:
        return self._path(at, "changes")

    def _snapshot_path(self, at: int) -> str:
        return self._path(at, "snapshot")

    def _path(self, at: int, kind: str) -> str:
        step, number = divmod(at, MAX_ROUNDS)
        return f"{self._folder}/{step:012d}-{number:05d}.{kind}"

    def _exists(self, path: str) -> bool:
        return bool(self._fs.get_file_info(path).type == fs.FileType.File)

    def _write(
        self, path: str, at: int, parent: StateVersion, metadata: TaskMetadata, stores: Mapping[str, Changes]
    ) -> StateVersion:
        body = _encode(_Body(dict(metadata), {name: _ipc(changes) for name, changes in sorted(stores.items())}))
        version = StateVersion(at, hashlib.blake2b(body, digest_size=16).digest())
        header = HEADER.pack(MAGIC, FORMAT_VERSION, at, *parent, len(body), version.digest)
        self._fs.create_dir(self._folder, recursive=True)
        scratch = f"{path}.{id(body):x}.tmp"
        with self._fs.open_output_stream(scratch) as file:
            file.write(header + CHECKSUM.pack(google_crc32c.value(header)) + body)
        self._fs.move(scratch, path)
        make_private_on(self._fs, os.path.dirname(self._folder), self._folder, path)
        return version

    def _header(self, path: str) -> tuple[StateVersion, StateVersion, int]:
        with self._open(path) as file:
            return _unpack(path, file.read(HEADER.size + CHECKSUM.size))

    def _read(self, path: str) -> StateFile:
        with self._open(path) as file:
            version, parent, length = _unpack(path, file.read(HEADER.size + CHECKSUM.size))
            body = file.read()
        if len(body) != length or hashlib.blake2b(body, digest_size=16).digest() != version.digest:
            raise StateError(f"{path} is damaged: its content does not fit its digest. Restore the file from a copy.")
        content = _decode(body)
        stores = {name: _changes(raw) for name, raw in content.stores.items()}
        return StateFile(version, parent, content.metadata, stores)

    def _open(self, path: str) -> pa.NativeFile:
        try:
            return self._fs.open_input_file(path)
        except FileNotFoundError as error:
            raise StateError(f"{path} is missing: the checkpoint is incomplete, start anew with another.") from error

    def _require(self, fits: bool, version: StateVersion) -> None:
        if not fits:
            raise StateError(
                f"The state files in {self._folder} do not form one history at step "
                f"{version.number // MAX_ROUNDS}: two applications may share this checkpoint. Give each its own "
                "`application.id`."
            )

    def _prune(self, newest_snapshot: int) -> None:
        # One snapshot before the newest stays: the last step can be run again from it.
        snapshots = sorted(at for at, path in self._files() if path.endswith(".snapshot") and at < newest_snapshot)
        for at, path in self._files():
            if snapshots and at < snapshots[-1]:
                self._fs.delete_file(path)

    def _files(self) -> Iterator[tuple[int, str]]:
        for info in self._fs.get_file_info(fs.FileSelector(self._folder)):
            place, dot, kind = info.base_name.partition(".")
            if dot and kind in ("changes", "snapshot"):
                yield version_number(*map(int, place.split("-"))), info.path


def _unpack(path: str, raw: bytes) -> tuple[StateVersion, StateVersion, int]:
    header, checksum = raw[: HEADER.size], raw[HEADER.size :]
    if len(checksum) != CHECKSUM.size or CHECKSUM.unpack(checksum)[0] != google_crc32c.value(header):
        raise StateError(f"{path} is damaged: its header fails its checksum. Restore the file from a copy.")
    magic, version, at, before, parent, length, digest = HEADER.unpack(header)
    if magic != MAGIC or version != FORMAT_VERSION:
        raise StateError(f"{path} has format {magic!r} {version}; this kstreams reads {MAGIC!r} {FORMAT_VERSION}.")
    return StateVersion(at, digest), StateVersion(before, parent), length


def _ipc(changes: Changes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA, options=_IPC) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(list(changes), schema=_SCHEMA))
    return bytes(sink.getvalue())


def _changes(raw: bytes) -> Changes:
    with pa.ipc.open_stream(pa.py_buffer(raw)) as reader:
        batch = reader.read_next_batch()
    return Changes(batch["key"], batch["value"], batch["timestamp"])
