"""`start`: runs a topology on Spark in the background; `SparkRun`: the handle by which it is asked and stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Literal, Self

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from kstreams.config import Config
from kstreams.errors import LogError, StateError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.log.naming import did_you_mean
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.metrics.catalogue import MetricName
from kstreams.os.forks import of_one_process
from kstreams.processor.topology.topology import Topology, built
from kstreams.runtime.running_here import LocalRun, make_room, note
from kstreams.runtime.spark.cluster.session import quiet, session_of_run, spark_session
from kstreams.runtime.spark.cluster.suitability import require_suitable
from kstreams.runtime.spark.cluster.unshippable import require_shippable
from kstreams.runtime.spark.io.open_homes import HomePlace
from kstreams.runtime.spark.io.source import register
from kstreams.runtime.spark.io.typed_rows import DELETED, Serdes, TypedRows, last_of_each_key, serdes_written
from kstreams.runtime.spark.measured.step_sensors import Value, gathered
from kstreams.runtime.spark.progress import OnProgress, SparkProgress
from kstreams.runtime.spark.runner import SparkRunner, driver_lock
from kstreams.runtime.spark.settings import SparkSettings


class Results:
    """What an application reads and writes.

    Parameters
    ----------
    session : SparkSession
        Reads it.
    topology : Topology
    config : Config
    prefix : str
        Stands before the names of the topics that it writes.
    """

    def __init__(self, session: SparkSession, topology: Topology, config: Config, prefix: str) -> None:
        self._session = session
        self._home = HomePlace.of(config)
        written = serdes_written(topology.sub_topologies)
        fed = {feed.topic: f"{config.application_id}-{feed.topic}" for feed in topology.feeds}
        internal = {topic.name for topic in topology.internal_topics}
        self._places: dict[str, tuple[str, Serdes]] = {
            topic: (fed.get(topic, topic), (source.key, source.value))
            for sub in topology.sub_topologies
            for source in sub.sources
            for topic in source.topics
        }
        self._places |= {topic: (prefix + topic, serdes) for topic, serdes in written.items()}
        self._places = {topic: place for topic, place in self._places.items() if topic not in internal}

    def of(self, topic: str, *, last_of_each_key: bool) -> DataFrame:
        """See `SparkRun.to_dataframe`."""
        if topic not in self._places:
            hint = did_you_mean(topic, self._places)
            raise UnknownTopicError(f"The topology neither writes nor reads a topic {topic!r}.{hint}")
        name, serdes = self._places[topic]
        register(self._session)
        reader = self._session.read.format("kstreams").option("path", self._home.address).option("topics", name)
        rows = reader.option("secretSettings", json.dumps(self._home.settings)).load()
        records = _table(rows) if last_of_each_key else rows
        return TypedRows(serdes).of(records).drop(DELETED)


def _table(rows: DataFrame) -> DataFrame:
    return last_of_each_key(rows, ("offset",)).where("value IS NOT NULL")


Status = Literal["RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING", "ERROR"]


class SparkRun:
    """A topology that runs on Spark in a thread of this process; `start` makes it. Usable as a context manager.

    Parameters
    ----------
    application_id : str
    runner : SparkRunner
    results : Results
    resources : ExitStack
        Closed when the run is over.
    once, until_end : bool
    """

    def __init__(
        self,
        application_id: str,
        runner: SparkRunner,
        results: Results,
        resources: ExitStack,
        *,
        once: bool,
        until_end: bool,
    ) -> None:
        self._application_id = application_id
        self._runner = runner
        self._results = results
        self._resources = resources
        self._stop = threading.Event()
        self._error = list[BaseException]()
        arguments = {"once": once, "until_end": until_end, "stop": self._stop}
        self._thread = InheritableThread(target=self._run, kwargs=arguments, name="kstreams-spark", daemon=True)
        self._thread.start()
        of_one_process(self, f"The run of {application_id!r}", StateError)

    @property
    def status(self) -> Status:
        """How it is, in the words of `KafkaStreams.state`: NOT_RUNNING after its end, ERROR when something ended it."""
        if self._thread.is_alive():
            return "PENDING_SHUTDOWN" if self._stop.is_set() else "RUNNING"
        return "ERROR" if self._error else "NOT_RUNNING"

    @property
    def progress(self) -> SparkProgress:
        """Its counters now."""
        now = self._runner.progress
        return replace(now, records_out=now.records_out.copy(), dropped=now.dropped.copy())

    def metrics(self) -> dict[MetricName, Value]:
        """The values of its metrics now, by the names that they have natively; docs/metrics.md tells which there are.

        A call asks the home of topics where partitions end.
        """
        lags = dict[TopicPartition, int]()
        if self._thread.is_alive():
            with suppress(LogError):  # a home that does not answer now, or is closed just so
                lags = self._runner.lags()
        return gathered(self._application_id, self.status, self.progress, self._runner.sensors, lags)

    @property
    def exception(self) -> BaseException | None:
        """What ended it."""
        return self._error[0] if self._error else None

    def await_termination(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, or so many seconds; whether it has. Raises what ended it."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            return False
        if self._error:
            raise self._error[0]
        return True

    def stop(self, *, wait: bool = True) -> None:
        """End it, in the middle of a step if need be: that step is run again by the next start.

        Who is called by the run itself, as `on_progress` is, does not wait for it.
        """
        self._stop.set()
        if wait:
            self._thread.join()

    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return bool(self._thread.is_alive())

    def stopped(self, seconds: float) -> bool:
        """End it within so many seconds; whether that was done."""
        self._stop.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def to_dataframe(self, topic: str, *, last_of_each_key: bool = False) -> DataFrame:
        """The records of a topic that the topology writes or reads, as they are whenever the DataFrame is evaluated.

        Parameters
        ----------
        topic : str
            Its name in the topology.
        last_of_each_key : bool
            The rows of the table instead, of which the records are the changes.

        Returns
        -------
        DataFrame
            Columns `key`, `value` (typed where their types are known), `timestamp`, `partition` and `headers`.

        Raises
        ------
        UnknownTopicError
            When the topology has no such topic; names the nearest.
        """
        return self._results.of(topic, last_of_each_key=last_of_each_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _run(self, **arguments: Any) -> None:
        with self._resources:
            try:
                self._runner.run(**arguments)
            except BaseException as error:
                self._error.append(error)


def start(
    topology: object,
    spark: SparkSession | None = None,
    config: Config | Mapping[str, object] | None = None,
    *,
    once: bool = False,
    until_end: bool = False,
    on_progress: OnProgress | None = None,
    say: Callable[[str], None] = quiet,
) -> SparkRun:
    """Run a topology on Spark, in the background.

    Parameters
    ----------
    topology : StreamsBuilder, Topology, or a function that returns one
    spark : SparkSession, optional
        The one of the notebook or job; without it the active one, or a new local one.
    config : Config or mapping
        `application.id` is needed; `spark.*` goes to Spark, `spark.kstreams.*` is ours.
    once, until_end : bool
        Stop when everything that the topics hold now is processed; with `until_end`, close what is still open.
    on_progress : callable, optional
        Called after every step, by the thread that ran it.
    say : callable, optional
        Gets a line for what takes seconds before the first row.

    Raises
    ------
    EngineUnavailableError
        When Java, PySpark or jars are missing, or the session does not suit; names the cure.
    UnknownTopicError, TopologyError, ConfigError
        When the topology does not fit its topics, its checkpoint or the settings, or a function holds what cannot be
        sent to workers, such as a lock or a connection. Nothing was started then.
    """
    settings = Config.of(config)
    registry = ApplicationRegistry(settings)
    bound = built(topology, settings, "kstreams.spark.start").bound(settings, registry)
    of_spark = SparkSettings.of(settings)
    require_shippable(bound, settings)
    session = spark or spark_session(of_spark, say)
    require_suitable(session, of_spark, bound.feeds)
    checkpoint = of_spark.checkpoint_of(settings.application_id)
    make_room(checkpoint, topology)
    with ExitStack() as resources:
        resources.callback(registry.close)
        resources.enter_context(driver_lock(settings, shared=True))
        log = resources.enter_context(home_of(settings).open(settings))
        own = session_of_run(session, of_spark)
        runner = SparkRunner(bound, settings, own, log, SystemClock(), on_progress=on_progress, watching=session)
        results = Results(session, bound, settings, of_spark.prefix)
        run = SparkRun(settings.application_id, runner, results, resources.pop_all(), once=once, until_end=until_end)
    note(checkpoint, LocalRun(f"the application {settings.application_id!r}", topology, run.is_alive, run.stopped))
    return run
