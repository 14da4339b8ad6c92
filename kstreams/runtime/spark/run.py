"""`start`: runs a topology on Spark in the background; `SparkRun`: the handle of such a run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Literal, Self

from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from kstreams.config import Config
from kstreams.errors import LogError, StateError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import SystemClock
from kstreams.log import home_of
from kstreams.log.naming import did_you_mean
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.metrics.template import MetricName
from kstreams.metrics.values import MetricValue
from kstreams.os.forks import of_one_process
from kstreams.processor.topology.topology import Topology, built
from kstreams.runtime.running_here import LocalRun, make_room, note
from kstreams.runtime.spark.cluster.session import quiet, session_of_run, spark_session
from kstreams.runtime.spark.cluster.suitability import require_suitable
from kstreams.runtime.spark.cluster.unshippable import require_shippable
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.source import register
from kstreams.runtime.spark.io.typed_rows import DELETED, Serdes, TypedRows, last_of_each_key, serdes_written
from kstreams.runtime.spark.progress import OnProgress, SparkProgress
from kstreams.runtime.spark.run_display import LiveDisplay, RunState, html_of, text_of
from kstreams.runtime.spark.runner import SparkRunner, driver_lock
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.step_sensors import metric_values


class TopicFrames:
    """DataFrames of the topics that an application reads and writes.

    Parameters
    ----------
    session : SparkSession
        The session that reads the topics.
    topology : Topology
    config : Config
    prefix : str
        The prefix of the names of written topics.
    """

    def __init__(self, session: SparkSession, topology: Topology, config: Config, prefix: str) -> None:
        self._session = session
        self._home = HomeAddress.of(config)
        written = serdes_written(topology.sub_topologies)
        fed = {feed.topic: f"{config.application_id}-{feed.topic}" for feed in topology.feeds}
        internal = {topic.name for topic in topology.internal_topics}
        topics: dict[str, tuple[str, Serdes]] = {
            topic: (fed.get(topic, topic), (source.key, source.value))
            for sub in topology.sub_topologies
            for source in sub.sources
            for topic in source.topics
        }
        topics |= {topic: (prefix + topic, serdes) for topic, serdes in written.items()}
        self._names_and_serdes = {
            topic: name_and_serdes for topic, name_and_serdes in topics.items() if topic not in internal
        }

    def of(self, topic: str, *, last_of_each_key: bool) -> DataFrame:
        """See `SparkRun.to_dataframe`."""
        if topic not in self._names_and_serdes:
            hint = did_you_mean(topic, self._names_and_serdes)
            raise UnknownTopicError(f"The topology neither writes nor reads a topic {topic!r}.{hint}")
        name, serdes = self._names_and_serdes[topic]
        register(self._session)
        reader = self._session.read.format("kstreams").option("path", self._home.address).option("topics", name)
        rows = reader.option("secretSettings", json.dumps(self._home.settings)).load()
        records = _rows_of_table(rows) if last_of_each_key else rows
        return TypedRows(serdes).of(records).drop(DELETED)


def _rows_of_table(records: DataFrame) -> DataFrame:
    return last_of_each_key(records, ("offset",)).where("value IS NOT NULL")


_SHOWN_EVERY_S = 1.0
Status = Literal["RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING", "ERROR"]


class SparkRun:
    """A topology that runs on Spark in a thread of this process. `start` creates it. Usable as a context manager.

    Parameters
    ----------
    application_id : str
    runner : SparkRunner
    frames : TopicFrames
    resources : ExitStack
        Closed at the end of the run.
    once, until_end : bool
    """

    def __init__(
        self,
        application_id: str,
        runner: SparkRunner,
        frames: TopicFrames,
        resources: ExitStack,
        *,
        once: bool,
        until_end: bool,
    ) -> None:
        self._application_id = application_id
        self._runner = runner
        self._frames = frames
        self._resources = resources
        self._stop = threading.Event()
        self._error = list[BaseException]()
        arguments = {"once": once, "until_end": until_end, "stop": self._stop}
        self._thread = InheritableThread(target=self._run, kwargs=arguments, name="kstreams-spark", daemon=True)
        self._thread.start()
        of_one_process(self, f"The run of {application_id!r}", StateError)

    @property
    def status(self) -> Status:
        """The state, named as in `KafkaStreams.state`: NOT_RUNNING after the end, ERROR if an error ended the run."""
        if self._thread.is_alive():
            return "PENDING_SHUTDOWN" if self._stop.is_set() else "RUNNING"
        return "ERROR" if self._error else "NOT_RUNNING"

    @property
    def progress(self) -> SparkProgress:
        """A copy of the counters."""
        progress = self._runner.progress
        return replace(progress, records_out=progress.records_out.copy(), dropped=progress.dropped.copy())

    def metrics(self) -> dict[MetricName, MetricValue]:
        """Return the values of the metrics by their names on the native engine; docs/reference/metrics.md lists them.

        Each call reads the end offsets of the source topics.
        """
        lags = self._lags()
        sensors = self._runner.sensors
        batches = self._runner.batches()
        values = metric_values(self._application_id, self.status, self.progress, sensors, lags, batches)
        of_connectors = self._runner.connectors.metrics(self._application_id)
        return values | {name: value for name, value in of_connectors if value is not None}

    @property
    def exception(self) -> BaseException | None:
        """The error that ended the run, if there was one."""
        return self._error[0] if self._error else None

    def await_termination(self, seconds: float | None = None) -> bool:
        """Wait for at most `seconds`, and return True if the run has ended. Raises the error that ended it.

        An interrupt (Ctrl-C, the stop button of a notebook) ends the run before KeyboardInterrupt is raised.
        """
        with self._stopped_by_interrupt():
            self._thread.join(seconds)
        if self._thread.is_alive():
            return False
        if self._error:
            raise self._error[0]
        return True

    def show(self, seconds: float | None = None) -> bool:
        """Show the progress every second until the run ends, or for at most `seconds`; return True if it has ended.

        In a notebook the shown tables change in place; elsewhere each change is a line. An interrupt ends the run, as
        in `await_termination`. `display(run)` shows the same once.
        """
        deadline = monotonic() + (inf if seconds is None else seconds)
        with self._stopped_by_interrupt():
            live = LiveDisplay(self)
        try:
            with self._stopped_by_interrupt():
                while not self.await_termination(min(_SHOWN_EVERY_S, max(0.0, deadline - monotonic()))):
                    live.update()
                    if monotonic() >= deadline:
                        return False
            return True
        finally:
            live.update()

    @contextmanager
    def _stopped_by_interrupt(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self.stop()
            raise

    def __repr__(self) -> str:
        return text_of(self._state())

    def _repr_html_(self) -> str:
        return html_of(self._state())

    def _state(self) -> RunState:
        progress = replace(self.progress, lag=sum(self._lags().values()))
        return RunState(self._application_id, self.status, progress, self._runner.batches(), self.exception)

    def _lags(self) -> dict[TopicPartition, int]:
        """Return the unprocessed records of each partition; none after the end, or if the log does not answer."""
        if self._thread.is_alive():
            with suppress(LogError):  # the home is unavailable, or the run is closing it
                return self._runner.lags()
        return {}

    def stop(self, *, wait: bool = True) -> None:
        """End the run, also within a step; the next start repeats that step.

        A callback of the run itself, such as `on_progress`, passes `wait=False`.
        """
        self._stop.set()
        if wait:
            self._thread.join()

    def is_alive(self) -> bool:
        """Return True until the run has ended."""
        return bool(self._thread.is_alive())

    def stopped(self, seconds: float) -> bool:
        """End the run, wait at most `seconds`, and return True if it has ended."""
        self._stop.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def to_dataframe(self, topic: str, *, last_of_each_key: bool = False) -> DataFrame:
        """Return the records of a topic that the topology writes or reads.

        Each evaluation of the DataFrame reads the records that the topic then holds.

        Parameters
        ----------
        topic : str
            The name of the topic in the topology.
        last_of_each_key : bool
            True for the rows of the table whose changes the records are: the last value of each key.

        Returns
        -------
        DataFrame
            Columns `key`, `value` (typed if their types are known), `timestamp`, `partition` and `headers`.

        Raises
        ------
        UnknownTopicError
            If the topology has no such topic; the message names the nearest one.
        """
        return self._frames.of(topic, last_of_each_key=last_of_each_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _run(self, *, once: bool, until_end: bool, stop: threading.Event) -> None:
        with self._resources:
            try:
                self._runner.run(once=once, until_end=until_end, stop=stop)
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
        The session of the notebook or job; by default the active session, or a new local one.
    config : Config or mapping
        Must have `application.id`. Keys `spark.kstreams.*` are settings of this engine; other keys `spark.*` are passed
        to Spark.
    once, until_end : bool
        Stop when all records that the topics hold now are processed; with `until_end`, also close open windows.
    on_progress : callable, optional
        Called after every step, by the thread that ran the step.
    say : callable, optional
        Called with a line of text before each part of the start that takes seconds.

    Raises
    ------
    EngineUnavailableError
        If Java, PySpark or jars are missing, or the session does not suit; the message says what to do.
    UnknownTopicError, TopologyError, ConfigError
        If the topology does not fit its topics, its checkpoint or the settings, or a function refers to an object that
        cannot be sent to workers, such as a lock or a connection. Nothing is started then.
    """
    settings = Config.of(config)
    registry = ApplicationRegistry(settings)
    declared_topology = built(topology, settings, "kstreams.spark.start")
    spark_settings = SparkSettings.of(settings)
    named = declared_topology.with_connector_topics(settings.application_id, spark_settings.prefix)
    bound = named.bound(settings, registry)
    require_shippable(bound, settings)
    session = spark or spark_session(spark_settings, say)
    require_suitable(session, spark_settings, bound.feeds)
    checkpoint = spark_settings.checkpoint_of(settings.application_id)
    make_room(checkpoint, topology)
    with ExitStack() as resources:
        resources.callback(registry.close)
        resources.enter_context(driver_lock(settings, shared=True))
        log = resources.enter_context(home_of(settings).open(settings))
        run_session = session_of_run(session, spark_settings)
        runner = SparkRunner(
            bound, settings, run_session, log, SystemClock(), on_progress=on_progress, listened_session=session
        )
        frames = TopicFrames(session, bound, settings, spark_settings.prefix)
        run = SparkRun(settings.application_id, runner, frames, resources.pop_all(), once=once, until_end=until_end)
    note(checkpoint, LocalRun(f"the application {settings.application_id!r}", topology, run.is_alive, run.stopped))
    return run
