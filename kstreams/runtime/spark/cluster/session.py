"""The Spark session: the active one, a local one that starts fast, or the one of `spark-submit`."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kstreams.errors import EngineUnavailableError
from kstreams.os.open_files import POOL
from kstreams.runtime.spark.cluster.jars import DELTA_AND_KAFKA, S3, JarSet, spark_jars
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.location import for_spark, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALLOCATION = "spark.dynamicAllocation"
_UNBOUNDED = 2**31 - 1


def task_slots(session: SparkSession) -> int:
    """Return the number of cores; with dynamic allocation the maximum, since Spark adds cores for waiting tasks."""
    conf = session.conf
    if conf.get(f"{_ALLOCATION}.enabled", "false") != "true":
        return int(session.sparkContext.defaultParallelism)
    per_executor = int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
    return int(conf.get(f"{_ALLOCATION}.maxExecutors", str(_UNBOUNDED))) * max(1, per_executor)


logger = logging.getLogger(__name__)

Say = Callable[[str], None]

# Errors reach the user as a KStreamsError, which would be hard to find among Spark's log lines.
QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
# The settings of every session.
COMMON = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.snapshotPartitions": "2",
    # With TCP, the first read of each Python task waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    # On a busy machine, a new Python worker takes longer than the default timeout of 15 s to connect.
    "spark.python.authenticate.socketTimeout": "180s",
    # In 4.2.0, a query hangs if an Arrow UDF over the columns of Parquet feeds another Arrow UDF.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}
LOCAL = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.daemon.module": "kstreams.runtime.spark.cluster.worker_daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # On a local disk it halves the time of a trigger. It fences two drivers of one checkpoint less reliably.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC {QUIET}",
}
# Settings that change results. They override those that the user has set for other queries.
OF_RUN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}
FOR_STEPS = {"spark.sql.adaptive.enabled": "false", "spark.sql.execution.arrow.maxBytesPerBatch": "64m"}
_SELECT_LIMIT = 1_024
"""The lowest file descriptor that `select` refuses."""
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def quiet(line: str) -> None:
    """Ignore a line."""


def spark_session(settings: SparkSettings, say: Say = quiet) -> SparkSession:
    """Return the active session, the one that `spark-submit` prepared, or a new local one.

    Parameters
    ----------
    settings : SparkSettings
    say : callable
        Called with a line of text before each part that takes seconds.

    Raises
    ------
    EngineUnavailableError
        If Java, PySpark or the jars are missing, or too many files are open; the message says what to do.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    say("starting Spark (some seconds)")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs errors that are also raised to the caller
    builder = SparkSession.builder.appName("kstreams")
    for key, value in session_conf(settings, submitted="PYSPARK_GATEWAY_PORT" in os.environ, say=say).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    listen_for_calls(session)
    return session


def suitable_session(config: Mapping[str, object] | None = None, say: Say = print) -> SparkSession:
    """Return a session for kstreams: the active one, or a new local one with Delta Lake.

    Parameters
    ----------
    config : mapping, optional
        Its `spark.*` keys are the settings of the session, such as `spark.master` and `spark.driver.memory`.
    say : callable
        Called with a line of text before each part that takes seconds.
    """
    return spark_session(SparkSettings.of(config or {}), say)


def listen_for_calls(session: SparkSession) -> None:
    """Open the port on which Spark calls this process.

    This is done early, while low file descriptors are free: PySpark listens with `select`, which refuses descriptors
    from 1,024 on, so that the first query would hang.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = session.sparkContext._gateway
    POOL.close_unused()
    gc.collect()  # closes files without references
    ensure_callback_server_started(gateway)
    if gateway._callback_server.server_socket.fileno() >= _SELECT_LIMIT:
        session.stop()
        raise EngineUnavailableError(
            f"This process has more than {_SELECT_LIMIT:,} files open, so Spark cannot call it back: "
            "start Spark before it opens them, or in a process of its own."
        )


def session_with(session: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Return a new session of the same Spark application with the settings of a session, and with those of `conf`."""
    new_session = session.newSession()
    inherited = session.conf.getAll
    settings = {**inherited, **conf}
    present = {key for key, value in new_session.conf.getAll.items() if settings.get(key) == value}
    for key in settings.keys() - present:
        if new_session.conf.isModifiable(key):
            new_session.conf.set(key, settings[key])
        elif key in conf and conf[key] != inherited.get(key):
            logger.warning("%s=%s cannot be set any more: this Spark session was started without it", key, conf[key])
    return new_session


def session_of_run(session: SparkSession, settings: SparkSettings) -> SparkSession:
    """Return the session of an application, whose results do not depend on the settings of a notebook."""
    return session_with(session, {**OF_RUN, **settings.conf})


def session_for_steps(session: SparkSession) -> SparkSession:
    """Return a session for steps, without adaptive execution.

    Adaptive execution runs each shuffle as a job of its own, and plans the rest again. The plan of a step does not
    become better by this, but a small step takes a third longer. Blocks are large, so Arrow batches are limited by
    bytes.
    """
    return session_with(session, FOR_STEPS)


def session_conf(settings: SparkSettings, *, submitted: bool = False, say: Say = quiet) -> dict[str, str]:
    """Return the settings of a new session; `spark.*` settings of the configuration take precedence.

    Parameters
    ----------
    submitted : bool
        True if `spark-submit` starts the session: its command line has master, memory and jars.
    """
    conf = dict(COMMON) if submitted else COMMON | LOCAL
    conf |= settings.conf
    if not submitted:
        require_java()
        os.environ["PYSPARK_PYTHON"] = sys.executable  # by default, workers run the `python3` on the path
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if settings.delta is not None:
        conf |= DELTA
    return conf if submitted else with_jars(conf, settings, say)


def with_jars(conf: Mapping[str, str], settings: SparkSettings, say: Say) -> dict[str, str]:
    """Return the settings with the required jars, unless they already have jars."""
    sets = _jars_of_sources_and_tables(settings)
    locations = [settings.checkpoint, *([] if settings.delta is None else [settings.delta.folder])]
    sets += [S3] if any(scheme_of(for_spark(location, settings.conf)) == "s3a" for location in locations) else []
    if not sets or "spark.jars" in conf:
        return dict(conf)
    return {**conf, "spark.jars": ",".join(str(jar) for jars in sets for jar in spark_jars(jars, say=say))}


def _jars_of_sources_and_tables(settings: SparkSettings) -> list[JarSet]:
    if settings.delta is not None:
        return [DELTA_AND_KAFKA]
    without = "`spark.kstreams.path=task` to run as tasks only"
    return [DELTA_AND_KAFKA._replace(purpose="Kafka", without=without)] if settings.may_read_kafka else []


def require_pyspark() -> None:
    """Raise EngineUnavailableError if PySpark is not installed."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise EngineUnavailableError(
            "PySpark is not installed: install it with `pip install '.[spark]'` in the clone of kstreams."
        ) from error


def require_java() -> None:
    """Raise EngineUnavailableError if there is no Java."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home, "bin", "java")) if home else "java") is None:
        raise EngineUnavailableError("Spark needs Java 17 or later: install it, or set JAVA_HOME to where it is.")
