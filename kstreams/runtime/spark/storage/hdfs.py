"""`HdfsStorage`: a checkpoint in HDFS. Its client needs no JVM in the workers."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from hdfs_native import Client, WriteOptions

from kstreams.errors import StateError
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage, Content

_HADOOP = "spark.hadoop."
_SCRATCH = ".tmp"


class HdfsStorage(CheckpointStorage):
    """Files in HDFS, readable by their owner only. A file is written under a temporary name and renamed atomically."""

    def __init__(self, location: str, conf: Mapping[str, str]) -> None:
        super().__init__(location, conf)
        parts = urlsplit(location)
        hadoop = {key.removeprefix(_HADOOP): value for key, value in conf.items() if key.startswith(_HADOOP)}
        with self._storage_errors("", "opened"):
            self._client = Client(f"{parts.scheme}://{parts.netloc}", hadoop)
        self._root = parts.path

    def read(self, name: str) -> bytes:
        with self._storage_errors(name, "read"), self._client.read(f"{self._root}/{name}") as file:
            return bytes(file.read())

    def write(self, name: str, content: Content) -> None:
        with self._storage_errors(name, "written"):
            self._put(name, content, overwrite=True)

    def publish(self, name: str, content: bytes) -> bytes:
        with self._storage_errors(name, "written"), suppress(FileExistsError):
            self._put(name, content, overwrite=False)
        return self.read(name)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._storage_errors(folder, "listed"), suppress(FileNotFoundError):
            files = [status for status in self._client.list_status(f"{self._root}/{folder}") if not status.isdir]
            sizes = {str(status.path).rpartition("/")[2]: int(status.length) for status in files}
            return {name: size for name, size in sizes.items() if not name.endswith(_SCRATCH)}
        return {}

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError), self._storage_errors(name, "deleted"):
                self._client.delete(f"{self._root}/{name}")

    def clear(self) -> None:
        with suppress(FileNotFoundError), self._storage_errors("", "deleted"):
            self._client.delete(self._root, recursive=True)

    def _put(self, name: str, content: Content, *, overwrite: bool) -> None:
        path = f"{self._root}/{name}"
        self._client.mkdirs(path.rpartition("/")[0], permission=0o700, create_parent=True)
        scratch = f"{path}.{secrets.token_hex(8)}{_SCRATCH}"
        with self._client.create(scratch, WriteOptions(permission=0o600)) as file:
            file.write(content)
        try:
            self._client.rename(scratch, path, overwrite=overwrite)
        except BaseException:
            self._client.delete(scratch)
            raise

    @contextmanager
    def _storage_errors(self, name: str, action: str) -> Iterator[None]:
        """Convert errors of the client to StateError, except for missing and existing files."""
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise StateError(
                f"{self.location_of(name)} cannot be {action}: {error}. Name nodes and security come from "
                "HADOOP_CONF_DIR or from settings under `spark.hadoop.`: see docs/how-to/spark.md."
            ) from error
