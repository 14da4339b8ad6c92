"""Locations of checkpoints and tables: absolute paths or URIs. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kstreams.errors import ConfigError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def location_of(text: str) -> str:
    """Return the location of a setting: a URI as it is, a path as an absolute path.

    Raises
    ------
    ConfigError
        If a `file:` URI names another machine.

    Examples
    --------
    >>> location_of("s3a://bucket/checkpoints/"), location_of("file:///tmp/x")
    ('s3a://bucket/checkpoints', 'file:///tmp/x')
    >>> location_of(".kstreams/spark").startswith("/")
    True
    """
    if _SCHEME.match(text) is None:
        return str(Path(text).expanduser().absolute())
    if scheme_of(text) == "file":
        local_path(text)
    return text.rstrip("/")


def scheme_of(location: str) -> str:
    """Return the scheme of a URI; `file` for a path.

    Examples
    --------
    >>> scheme_of("S3://bucket/x"), scheme_of("/tmp/x"), scheme_of("dbfs:/x")
    ('s3', 'file', 'dbfs')
    """
    match = _SCHEME.match(location)
    return "file" if match is None else match[1].lower()


def below(location: str, *names: str) -> str:
    """Return the location of a name below another location.

    Examples
    --------
    >>> below("s3://bucket/cp", "app", "query"), below("/", "app")
    ('s3://bucket/cp/app/query', '/app')
    """
    return "/".join([location.rstrip("/"), *names])


def local_path(location: str) -> Path:
    """Return the local path of a path or a `file:` URI.

    Examples
    --------
    >>> str(local_path("file:///tmp/a b")), str(local_path("file:/tmp/x"))
    ('/tmp/a b', '/tmp/x')
    """
    if _SCHEME.match(location) is None:
        return Path(location)
    path = location.partition(":")[2]
    host, slash, path_of_host = path[2:].partition("/") if path.startswith("//") else ("", "/", path[1:])
    if host not in ("", "localhost"):
        raise ConfigError(
            f"{location} names the machine {host!r}: write file:///{host}{slash}{path_of_host} for a path of this one"
        )
    return Path(f"/{path_of_host}")


def for_spark(location: str, conf: Mapping[str, str]) -> str:
    """Return a location in the form of Spark's file systems.

    A path gets the scheme `file:`, since Spark would look for it in the cluster's default file system. `s3:` becomes
    `s3a:`, unless the settings name a file system for `s3:`.

    Examples
    --------
    >>> for_spark("/tmp/cp", {}), for_spark("s3://bucket/cp", {})
    ('file:///tmp/cp', 's3a://bucket/cp')
    >>> for_spark("s3://bucket/cp", {"spark.hadoop.fs.s3.impl": "com.example.FileSystem"})
    's3://bucket/cp'
    """
    scheme = scheme_of(location)
    if scheme == "file":
        return f"file://{local_path(location)}"
    if scheme == "s3" and "spark.hadoop.fs.s3.impl" not in conf:
        return f"s3a{location[2:]}"
    return location
