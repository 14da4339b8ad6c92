"""`require_suitable`: checks that a Spark session suits an application before anything starts."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from importlib import import_module

import pyarrow as pa
from pyspark.sql import SparkSession

from kstreams.errors import EngineUnavailableError
from kstreams.processor.topology.feeds import Feed
from kstreams.runtime.spark.cluster.session import DELTA, listen_for_calls
from kstreams.runtime.spark.settings import SparkSettings

_PROBED = "spark.kstreams.probed"
"""The setting of a session whose workers have been checked."""


def require_suitable(session: object, settings: SparkSettings, feeds: Iterable[Feed] = ()) -> None:
    """Raise EngineUnavailableError if an application, with its DataFrames, cannot run in a session."""
    if not isinstance(session, SparkSession) or is_of_connect(session):
        raise EngineUnavailableError(_NO_SESSION.format(f"{type(session).__module__}.{type(session).__qualname__}"))
    for feed in feeds:
        if is_of_connect(feed.frame):
            raise EngineUnavailableError(_NO_FRAME.format(feed))
    _require_delta(session, settings)
    if session.conf.get(_PROBED, None) is None:
        _require_workers(session)
        listen_for_calls(session)
        session.conf.set(_PROBED, "yes")


def is_of_connect(session: object) -> bool:
    """Return True for a session or a DataFrame of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _require_delta(session: SparkSession, settings: SparkSettings) -> None:
    if settings.delta is None:
        return
    missing_settings = [key for key, value in DELTA.items() if value not in session.conf.get(key, "")]
    if missing_settings:
        raise EngineUnavailableError(_NO_DELTA.format(" and ".join(missing_settings)))


def _require_workers(session: SparkSession) -> None:
    """Run a check of versions on a worker."""
    try:
        versions = session.range(1).mapInArrow(_worker_versions, "python string, arrow string, error string").first()
    except Exception as error:
        raise EngineUnavailableError(_NO_WORKERS.format(_reason(str(error)))) from error
    if versions is not None and versions.error:
        raise EngineUnavailableError(_NO_WORKERS.format(versions.error))


def _reason(text: str) -> str:
    """Return the line of a worker's error that names the cause, or the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [
        line for line in lines if line.startswith(("ModuleNotFoundError", "ImportError")) or "VERSION_MISMATCH" in line
    ]
    return (causes or lines or ["no worker could be started"])[0]


def _worker_versions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the versions of a worker, and the error if it cannot import kstreams."""
    error_text = None
    try:
        import_module("kstreams.runtime.spark.tasks.task_run")
    except ImportError as error:
        error_text = f"{type(error).__name__}: {error}"
    for _ in batches:
        columns = {"python": [platform.python_version()], "arrow": [pa.__version__], "error": [error_text]}
        yield pa.RecordBatch.from_pydict(columns, schema=_VERSIONS)


_VERSIONS = pa.schema([("python", pa.string()), ("arrow", pa.string()), ("error", pa.string())])

_NO_SESSION = (
    "kstreams cannot run in a {}: its driver plans steps with the SparkContext and runs functions of this process, "
    "which Spark Connect does not offer. Start a classic session in this process "
    "(`SparkSession.builder.master(...)`, or `kstreams.spark.session()`), or submit the application with "
    "`kstreams submit`. The DataFrames of `stream.to_dataframe()` run in Spark Connect."
)
_NO_FRAME = (
    "{} reads a DataFrame of Spark Connect, and the application runs in a classic session: give one of that session, "
    "or a function of the session, such as ks.spark.delta(path). The DataFrames of `stream.to_dataframe()` run in "
    "Spark Connect."
)
_NO_DELTA = (
    "This Spark session has no Delta Lake ({} not set), and results are to be written to Delta tables. Create the "
    "session with `kstreams.spark.session()`, or with Delta's jars and these settings; or run with "
    "spark.kstreams.delta=none."
)
_NO_WORKERS = (
    "The Python workers of this Spark session cannot run tasks: {}. They need the Python version of this process, "
    "with kstreams, pyarrow and numpy installed: set PYSPARK_PYTHON to this interpreter before the session starts, or "
    "ship an environment with `kstreams submit ... -- --archives`."
)
