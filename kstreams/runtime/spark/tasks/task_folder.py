"""`TaskFolder`: the folder of one task on the disk of an executor, with a lock, the stores and their version."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import google_crc32c
import msgspec

from kstreams.errors import StateError
from kstreams.kernel.decoders import msgpack_decoder
from kstreams.os.file_lock import lock_directory
from kstreams.os.private import write_private
from kstreams.runtime.spark.steps import StateVersion
from kstreams.state.api import StoreBuilder

_LAYOUT = 1
"""The version of the layout of stores; increase it if the rows of a store are laid out in another way."""
_CHECKSUM_BYTES = 4


class StoredVersion(msgspec.Struct, frozen=True):
    """The state version of the stores in a folder, and the task metadata of that version."""

    version: StateVersion
    metadata: Mapping[str, int] = {}


class _VersionFile(msgspec.Struct, frozen=True):
    """The content of the version file: the version, and a description of the stores."""

    stored: StoredVersion
    stores: list[str]
    layout: int = _LAYOUT


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgpack_decoder(_VersionFile)


class TaskFolder:
    """The folder of one task, locked by one process at a time.

    Parameters
    ----------
    path : Path
        The folder, which is created if it does not exist.

    Raises
    ------
    StateError
        If another process holds the lock, or the folder cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._lock = lock_directory(path)
        self._version_file = path / "version"
        self.stores = path / "stores"

    def __enter__(self) -> TaskFolder:
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def pop_version(self, builders: Sequence[StoreBuilder]) -> StoredVersion | None:
        """Read and delete the version file. Return None if it is missing or damaged, or describes other stores."""
        try:
            raw = self._version_file.read_bytes()
        except FileNotFoundError:
            return None
        self._version_file.unlink()
        content = raw[:-_CHECKSUM_BYTES]
        checksum = raw[-_CHECKSUM_BYTES:]
        if checksum != _checksum(content):
            return None
        file = _DECODER.decode(content)
        return file.stored if (file.layout, file.stores) == (_LAYOUT, _described(builders)) else None

    def write_version(self, builders: Sequence[StoreBuilder], stored: StoredVersion) -> None:
        """Write the version file after the stores are closed."""
        content = _ENCODER.encode(_VersionFile(stored, _described(builders)))
        try:
            write_private(self._version_file, content + _checksum(content))
        except OSError as error:
            raise StateError(
                f"{self._version_file} cannot be written: {error.strerror}. Make the folder writable, then start again."
            ) from error

    def clear(self) -> None:
        """Delete the stores."""
        shutil.rmtree(self.stores, ignore_errors=True)


def _described(builders: Sequence[StoreBuilder]) -> list[str]:
    return sorted(f"{builder.name}: {builder.kind.name} in {builder.store}" for builder in builders)


def _checksum(content: bytes) -> bytes:
    return int(google_crc32c.value(content)).to_bytes(_CHECKSUM_BYTES, "big")
