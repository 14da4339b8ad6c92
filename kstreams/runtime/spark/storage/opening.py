"""`open_storage`: opens the storage of a location by its scheme, once per process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from kstreams.errors import ConfigError
from kstreams.runtime.spark.storage.checkpoint_storage import CheckpointStorage
from kstreams.runtime.spark.storage.local import LocalStorage
from kstreams.runtime.spark.storage.location import scheme_of

_REMEDIES = {
    "dbfs": "give the address of the storage behind it, such as abfss://... or s3://...",
    "s3n": "write s3a://...",
    "wasb": "write abfss://<container>@<account>.dfs.core.windows.net/...",
    "wasbs": "write abfss://<container>@<account>.dfs.core.windows.net/...",
}


def open_storage(location: str, conf: Mapping[str, str]) -> CheckpointStorage:
    """Return the storage at a location.

    Parameters
    ----------
    location : str
        An absolute path or a URI.
    conf : mapping of str to str
        Settings of Spark.

    Raises
    ------
    ConfigError
        If its scheme is not supported, or the package for the scheme is not installed.

    Examples
    --------
    >>> open_storage("ftp://host/x", {})
    Traceback (most recent call last):
    ...
    kstreams.errors.ConfigError: A checkpoint cannot lie at ftp://host/x: give a path, or a URI that begins with \
file:, hdfs:, s3:, s3a:, abfs:, abfss:, gs:
    """
    return _opened(location, tuple(sorted((key, value) for key, value in conf.items() if "hadoop" in key)))


@lru_cache(maxsize=16)
def _opened(location: str, conf: tuple[tuple[str, str], ...]) -> CheckpointStorage:
    scheme = scheme_of(location)
    if scheme in _OPENERS:
        return _OPENERS[scheme](location, dict(conf))
    schemes = ", ".join(f"{name}:" for name in _OPENERS)
    remedy = _REMEDIES.get(scheme, f"give a path, or a URI that begins with {schemes}")
    raise ConfigError(f"A checkpoint cannot lie at {location}: {remedy}")


def _objects(location: str, conf: Mapping[str, str]) -> CheckpointStorage:
    with _import_errors(location, "obstore", "spark-objects"):
        from kstreams.runtime.spark.storage.objects import ObjectStorage
    return ObjectStorage(location, conf)


def _hdfs(location: str, conf: Mapping[str, str]) -> CheckpointStorage:
    with _import_errors(location, "hdfs-native", "spark-hdfs"):
        from kstreams.runtime.spark.storage.hdfs import HdfsStorage
    return HdfsStorage(location, conf)


@contextmanager
def _import_errors(location: str, package: str, extra: str) -> Iterator[None]:
    """Convert the ImportError of a package that is not installed to ConfigError."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"A checkpoint at {location} needs the package {package}: install it with `pip install '.[{extra}]'` in "
            "the clone of kstreams, on the driver and on the executors."
        ) from error


_OPENERS: dict[str, Callable[[str, Mapping[str, str]], CheckpointStorage]] = {
    "file": LocalStorage,
    "hdfs": _hdfs,
    **dict.fromkeys(("s3", "s3a", "abfs", "abfss", "gs"), _objects),
}
