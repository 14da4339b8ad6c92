"""Arguments for `spark-submit`: the user's own beside ours, joined where it takes one list and would drop the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from kstreams.errors import ConfigError, EngineUnavailableError

ENVIRONMENT = "environment"
"""The folder in which executors find the archive."""


def joined_lists(ours: Sequence[str], arguments: Sequence[str], option: str) -> tuple[str, list[str]]:
    """A comma-separated list of what is ours and what an option of the user's names; and the other arguments.

    Examples
    --------
    >>> joined_lists(["k.zip"], ["--py-files", "a.py", "--executor-memory", "2g"], "--py-files")
    ('k.zip,a.py', ['--executor-memory', '2g'])
    >>> joined_lists(["k.zip"], ["--py-files=a.py"], "--py-files")
    ('k.zip,a.py', [])
    """
    named = list(ours)
    other_arguments = list[str]()
    remaining = iter(arguments)
    for argument in remaining:
        if argument == option:
            named.append(next(remaining, ""))
        elif argument.startswith(f"{option}="):
            named.append(argument.partition("=")[2])
        else:
            other_arguments.append(argument)
    return ",".join(filter(None, named)), other_arguments


def archive_options(archive: str | None, driver: str | None) -> list[str]:
    """The options by which workers run the Python of a packed environment; `driver`, where another runs the driver.

    Raises
    ------
    ConfigError
        When there is no such file.
    """
    if archive is None:
        return []
    path, _, folder = archive.partition("#")
    require_files([path], "--archives")
    python = f"./{folder or ENVIRONMENT}/bin/python"
    of_driver = [] if driver is None else ["--conf", f"spark.pyspark.driver.python={driver}"]
    return ["--archives", f"{path}#{folder or ENVIRONMENT}", "--conf", f"spark.pyspark.python={python}", *of_driver]


def require_files(paths: Iterable[str], named_by: str) -> None:
    """Raise ConfigError for the first local file that is not there."""
    for path in filter(None, paths):
        local = urlsplit(path)
        if local.scheme in ("", "file") and "*" not in path and not Path(local.path).exists():
            raise ConfigError(f"there is no file {path}, which {named_by} names")


def require_deployable(master: str, deploy_mode: str) -> None:
    """Raise EngineUnavailableError where Spark would not run a driver in Python."""
    if deploy_mode == "cluster" and master.startswith(("spark://", "local")):
        raise EngineUnavailableError(
            f"Spark runs no driver in Python on {master} itself: leave out --deploy-mode cluster, so that the driver "
            "runs here, or submit to YARN or Kubernetes."
        )
