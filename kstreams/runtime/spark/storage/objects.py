"""`ObjectStorage`: a checkpoint in an object store: S3, Azure Data Lake or Google Cloud Storage."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import from_url

from kstreams.errors import StateError
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage, Content
from kstreams.runtime.spark.storage.location import scheme_of

_S3A = "spark.hadoop.fs.s3a."
_S3_KEYS = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_AZURE_KEY = "spark.hadoop.fs.azure.account.key."


class ObjectStorage(CheckpointStorage):
    """Objects under a prefix. `publish` uses a conditional put, which fails if the object exists."""

    def __init__(self, location: str, conf: Mapping[str, str]) -> None:
        super().__init__(location, conf)
        with self._reporting("", "opened"):
            self._store: Any = from_url(location, **_client(location, conf))

    def read(self, name: str) -> bytes:
        with self._reporting(name, "read"):
            return bytes(obstore.get(self._store, name).bytes())

    def write(self, name: str, content: Content) -> None:
        with self._reporting(name, "written"):
            obstore.put(self._store, name, content)

    def publish(self, name: str, content: bytes) -> bytes:
        with self._reporting(name, "written"), suppress(AlreadyExistsError):
            obstore.put(self._store, name, content, mode="create")
            return content
        return self.read(name)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._reporting(folder, "listed"):
            objects = obstore.list_with_delimiter(self._store, folder)["objects"]
        sizes = {str(entry["path"]): int(entry["size"]) for entry in objects}
        sizes.pop(folder, None)  # Hadoop marks folders with empty objects
        return {path.rpartition("/")[2]: size for path, size in sizes.items()}

    def delete(self, names: Iterable[str]) -> None:
        with suppress(FileNotFoundError), self._reporting("", "deleted"):
            obstore.delete(self._store, list(names))

    def clear(self) -> None:
        with self._reporting("", "deleted"):
            for entries in obstore.list(self._store, chunk_size=1000):
                obstore.delete(self._store, [entry["path"] for entry in entries])

    @contextmanager
    def _reporting(self, name: str, action: str) -> Iterator[None]:
        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and action in ("read", "deleted"):
                raise
            why = str(error).partition("\n")[0]
            raise StateError(
                f"{self.place(name)} cannot be {action}: {why}. Credentials and endpoint come from the environment or "
                "from the settings of Spark's own file system: see docs/spark.md."
            ) from error


def _client(location: str, conf: Mapping[str, str]) -> dict[str, object]:
    """Return the arguments of a client from Hadoop's settings; the environment supplies the others."""
    if scheme_of(location) in ("s3", "s3a"):
        return _s3_client(conf)
    if scheme_of(location) in ("abfs", "abfss"):
        account = location.partition("@")[2].partition("/")[0]
        key = conf.get(f"{_AZURE_KEY}{account}")
        return {} if key is None else {"account_key": key}
    return {}


def _s3_client(conf: Mapping[str, str]) -> dict[str, object]:
    client: dict[str, object] = {ours: conf[_S3A + key] for key, ours in _S3_KEYS.items() if _S3A + key in conf}
    endpoint = conf.get(f"{_S3A}endpoint", "")
    if endpoint and "://" not in endpoint:
        encrypted = conf.get(f"{_S3A}connection.ssl.enabled", "true") == "true"
        endpoint = f"{'https' if encrypted else 'http'}://{endpoint}"
    if endpoint:
        client["endpoint"] = endpoint
    url = endpoint or os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", ""))
    if url.startswith("http://"):
        client["client_options"] = {"allow_http": True}
    return client
