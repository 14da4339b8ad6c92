"""The Spark session: a local one that starts fast, or the one of `spark-submit`."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kstreams.errors import EngineUnavailableError
from kstreams.os.open_files import POOL
from kstreams.runtime.spark.cluster.jars import DELTA_AND_KAFKA, S3, spark_jars
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.storage.location import for_spark, scheme_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALLOCATION = "spark.dynamicAllocation"
_UNBOUNDED = 2**31 - 1


def task_slots(session: SparkSession) -> int:
    """Return the number of cores; under dynamic allocation the most cores, since Spark adds them for waiting tasks."""
    conf = session.conf
    if conf.get(f"{_ALLOCATION}.enabled", "false") != "true":
        return int(session.sparkContext.defaultParallelism)
    per_executor = int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
    return int(conf.get(f"{_ALLOCATION}.maxExecutors", str(_UNBOUNDED))) * max(1, per_executor)


logger = logging.getLogger(__name__)

Say = Callable[[str], None]

# Errors reach the user as a KStreamsError, which would be hard to find among Spark's log lines.
QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
# What every session needs, local or not.
COMMON = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Over TCP the first read of each Python task waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    # On a busy machine a new Python worker takes longer than the 15 s that it has to report by default.
    "spark.python.authenticate.socketTimeout": "180s",
    # In 4.2.0, a query waits for ever in which an Arrow UDF over the columns of Parquet feeds another one.
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
    # On a local disk it halves a trigger. It fences two drivers on one checkpoint less well, hence local only.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC {QUIET}",
}
# What decides about results, whatever the user has set for queries of their own.
OF_RUN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}
FOR_STEPS = {"spark.sql.adaptive.enabled": "false", "spark.sql.execution.arrow.maxBytesPerBatch": "64m"}
_MOST_FOR_SELECT = 1_024
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
        Gets a line for everything that takes seconds.

    Raises
    ------
    EngineUnavailableError
        If Java, PySpark or the jars are missing, or too many files are open; the message names the cure.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    say("starting Spark (some seconds)")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs what is raised to the caller anyway
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
        Its `spark.*` keys are the session's, such as `spark.master` and `spark.driver.memory`.
    say : callable
        Gets a line for everything that takes seconds.
    """
    return spark_session(SparkSettings.of(config or {}), say)


def listen_for_calls(session: SparkSession) -> None:
    """Open the port on which Spark calls this process while low file descriptors are free.

    PySpark listens with `select`, which takes no descriptor from 1,024 on; the first query would wait for ever.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = session.sparkContext._gateway
    POOL.close_unused()
    gc.collect()  # of files that nobody will ever close
    ensure_callback_server_started(gateway)
    if gateway._callback_server.server_socket.fileno() >= _MOST_FOR_SELECT:
        session.stop()
        raise EngineUnavailableError(
            f"This process has more than {_MOST_FOR_SELECT:,} files open, and PySpark cannot be called back then: "
            "start Spark before it opens them, or in a process of its own."
        )


def session_beside(session: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Return a session that shares all but the settings with another one: the settings of that session, and `conf`."""
    own = session.newSession()
    of_other = session.conf.getAll
    settings = {**of_other, **conf}
    for key in settings.keys() - {key for key, value in own.conf.getAll.items() if settings.get(key) == value}:
        if own.conf.isModifiable(key):
            own.conf.set(key, settings[key])
        elif key in conf and conf[key] != of_other.get(key):
            logger.warning("%s=%s cannot be set any more: this Spark session was started without it", key, conf[key])
    return own


def session_of_run(session: SparkSession, settings: SparkSettings) -> SparkSession:
    """Return the session of an application, so that settings of a notebook for its own queries change no results."""
    return session_beside(session, {**OF_RUN, **settings.conf})


def session_for_steps(session: SparkSession) -> SparkSession:
    """Return a session next to that of the run in which plans run without changes.

    Adaptive execution runs each shuffle as a job of its own, to plan anew what follows. The plan of a step has nothing
    to learn from that: it costs a third of a small step. Blocks are large, so that Arrow batches are cut by bytes.
    """
    return session_beside(session, FOR_STEPS)


def session_conf(settings: SparkSettings, *, submitted: bool = False, say: Say = quiet) -> dict[str, str]:
    """Return the settings of a new session; `spark.*` settings of the configuration take precedence.

    Parameters
    ----------
    submitted : bool
        Under `spark-submit` master, memory and jars were given on its command line.
    """
    conf = dict(COMMON) if submitted else COMMON | LOCAL
    conf |= settings.conf
    if not submitted:
        require_java()
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else the workers take whatever `python3` is on the path
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if settings.delta is not None:
        conf |= DELTA
    return conf if submitted else with_jars(conf, settings, say)


def with_jars(conf: Mapping[str, str], settings: SparkSettings, say: Say) -> dict[str, str]:
    """Return the settings with the required jars, unless they already have jars."""
    sets = [] if settings.delta is None else [DELTA_AND_KAFKA]
    places = [settings.checkpoint, *([] if settings.delta is None else [settings.delta.folder])]
    sets += [S3] if any(scheme_of(for_spark(place, settings.conf)) == "s3a" for place in places) else []
    if not sets or "spark.jars" in conf:
        return dict(conf)
    return {**conf, "spark.jars": joined(jar for jars in sets for jar in spark_jars(jars, say=say))}


def joined(paths: Iterable[Path]) -> str:
    """Join paths in the form of Spark's comma-separated lists."""
    return ",".join(map(str, paths))


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
