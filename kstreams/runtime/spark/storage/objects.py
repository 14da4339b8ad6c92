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
        with self._storage_errors("", "opened"):
            self._store: Any = from_url(location, **_client_options(location, conf))

    def read(self, name: str) -> bytes:
        with self._storage_errors(name, "read"):
            return bytes(obstore.get(self._store, name).bytes())

    def write(self, name: str, content: Content) -> None:
        with self._storage_errors(name, "written"):
            obstore.put(self._store, name, content)

    def publish(self, name: str, content: bytes) -> bytes:
        with self._storage_errors(name, "written"), suppress(AlreadyExistsError):
            obstore.put(self._store, name, content, mode="create")
            return content
        return self.read(name)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._storage_errors(folder, "listed"):
            objects = obstore.list_with_delimiter(self._store, folder)["objects"]
        sizes = {str(entry["path"]): int(entry["size"]) for entry in objects}
        sizes.pop(folder, None)  # Hadoop marks folders with empty objects
        return {path.rpartition("/")[2]: size for path, size in sizes.items()}

    def delete(self, names: Iterable[str]) -> None:
        with suppress(FileNotFoundError), self._storage_errors("", "deleted"):
            obstore.delete(self._store, list(names))

    def clear(self) -> None:
        with self._storage_errors("", "deleted"):
            for entries in obstore.list(self._store, chunk_size=1000):
                obstore.delete(self._store, [entry["path"] for entry in entries])

    @contextmanager
    def _storage_errors(self, name: str, action: str) -> Iterator[None]:
        """Convert errors of the client to StateError, except for missing and existing objects."""
        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and action in ("read", "deleted"):
                raise
            reason = str(error).partition("\n")[0]
            raise StateError(
                f"{self.location_of(name)} cannot be {action}: {reason}. Credentials and endpoint come from the "
                "environment or from the settings of Spark's own file system: see docs/how-to/spark.md."
            ) from error


def _client_options(location: str, conf: Mapping[str, str]) -> dict[str, object]:
    """Return the options of a client from Hadoop's settings; the environment supplies the others."""
    if scheme_of(location) in ("s3", "s3a"):
        return _s3_options(conf)
    if scheme_of(location) in ("abfs", "abfss"):
        account = location.partition("@")[2].partition("/")[0]
        key = conf.get(f"{_AZURE_KEY}{account}")
        return {} if key is None else {"account_key": key}
    return {}


def _s3_options(conf: Mapping[str, str]) -> dict[str, object]:
    options: dict[str, object] = {option: conf[_S3A + key] for key, option in _S3_KEYS.items() if _S3A + key in conf}
    endpoint = conf.get(f"{_S3A}endpoint", "")
    if endpoint and "://" not in endpoint:
        encrypted = conf.get(f"{_S3A}connection.ssl.enabled", "true") == "true"
        endpoint = f"{'https' if encrypted else 'http'}://{endpoint}"
    if endpoint:
        options["endpoint"] = endpoint
    url = endpoint or os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", ""))
    if url.startswith("http://"):
        options["client_options"] = {"allow_http": True}
    return options
