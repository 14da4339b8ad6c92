"""`LocalStorage`: a checkpoint in a folder on this machine, or on a file system that all machines mount."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from kstreams.errors import StateError
from kstreams.os.private import private_folder, refuse_link
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage, Content
from kstreams.runtime.spark.storage.location import local_path

_SCRATCH = ".tmp"


class LocalStorage(CheckpointStorage):
    """Files readable by their owner only. Each is written under a temporary name, so that readers see whole files."""

    def __init__(self, location: str, conf: Mapping[str, str]) -> None:
        super().__init__(location, conf)
        self._root = local_path(location)

    def read(self, name: str) -> bytes:
        path = self._root / name
        try:
            refuse_link(path)
            return path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}.") from error

    def write(self, name: str, content: Content) -> None:
        path = self._root / name
        with self._scratch(path, content) as scratch:
            os.replace(scratch, path)

    def publish(self, name: str, content: bytes) -> bytes:
        path = self._root / name
        with suppress(FileNotFoundError):
            return self.read(name)
        with self._scratch(path, content) as scratch, suppress(FileExistsError):
            os.link(scratch, path)
        return self.read(name)

    def sizes(self, folder: str) -> dict[str, int]:
        sizes: dict[str, int] = {}
        with suppress(FileNotFoundError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process has just deleted it
                    if entry.is_file() and not entry.name.endswith(_SCRATCH):
                        sizes[entry.name] = entry.stat().st_size
        return sizes

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def clear(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    @contextmanager
    def _scratch(self, path: Path, content: Content) -> Iterator[str]:
        """Write the content to a temporary file next to a path for the block, and delete that file afterwards."""
        try:
            private_folder(path.parent)
            descriptor, scratch = tempfile.mkstemp(_SCRATCH, dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                yield scratch
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(scratch)
        except OSError as error:
            raise StateError(
                f"{path} cannot be written: {error.strerror}. The checkpoint needs a file system with hard links on "
                "which driver and executors may write, or an object store (`spark.kstreams.checkpoint`)."
            ) from error
