"""`KafkaStreams`: runs a topology in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kstreams.config import Config
from kstreams.errors import ConfigError, StateError
from kstreams.kernel.advice import Advising
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.log.api import Log
from kstreams.metrics.template import MetricName
from kstreams.metrics.values import MetricValue
from kstreams.os.forks import of_one_process
from kstreams.processor.api.metrics import Measured, merged
from kstreams.processor.topology.feeds import refuse_feeds
from kstreams.processor.topology.topology import Topology, built
from kstreams.runtime.native.application_metrics import application_metrics
from kstreams.runtime.native.bounded_run import RunEnd
from kstreams.runtime.native.client import Client
from kstreams.runtime.native.lifecycle import TERMINAL, State, StateListener
from kstreams.runtime.native.local_application import LocalApplication
from kstreams.runtime.native.observation import current_operators
from kstreams.runtime.native.progress import Progress
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.state.locks import state_folder
from kstreams.runtime.native.state.restore import OnRestore, RestoreProgress
from kstreams.runtime.native.stores.metadata import TaskMetadata, ThreadMetadata
from kstreams.runtime.native.stores.queryable_stores import QueryableStores
from kstreams.runtime.native.uncaught_exceptions import UncaughtExceptionHandler
from kstreams.runtime.running_here import LocalRun, make_room, note


class KafkaStreams(QueryableStores, metaclass=Advising):
    """An application that runs a topology in threads of this process. Kafka Streams: `KafkaStreams`.

    Parameters
    ----------
    topology : Topology or StreamsBuilder
        The topology to run.
    config : Config or mapping
        At least `application.id`.
    log : Log, optional
        The home of the topics. Default: the embedded log in `log.dir`.
    clock : Clock, optional
    on_restore : callable, optional
        Called with a `RestoreProgress` after every batch of a restore.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from kstreams.log import open_log
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with open_log(folder / "log") as log, log.admin() as admin, log.producer() as producer:
    ...     admin.create_topic("words")
    ...     producer.send("words", b"a", b"b")
    >>> topology = Topology().add_source("in", "words", key=str, value=str)
    >>> topology = topology.add_sink("out", "copies", "in", key=str, value=str)
    >>> settings = {"application.id": "copy", "log.dir": folder / "log", "state.dir": folder / "state"}
    >>> with KafkaStreams(topology, settings) as streams:
    ...     streams.start(until_end=True)
    ...     streams.wait()
    ...     streams.progress().records_out["copies"]
    True
    1
    """

    def __init__(
        self,
        topology: Any,
        config: Config | Mapping[str, Any],
        *,
        log: Log | None = None,
        clock: Clock | None = None,
        on_restore: OnRestore | None = None,
    ) -> None:
        settings = Config.of(config)
        built_topology: Topology = built(topology, settings, "KafkaStreams")
        refuse_feeds(built_topology.feeds, "native")
        self._source = topology
        application = LocalApplication(built_topology, settings)
        super().__init__(application, Client(application, clock or SystemClock(), log, on_restore or _ignore))
        of_one_process(self, f"The application {settings.application_id!r}", StateError)

    @property
    def error(self) -> BaseException | None:
        """The error that ended the application in state ERROR."""
        return self._application.error

    def set_state_listener(self, listener: StateListener) -> None:
        """Call `listener(new, old)` at every change of state. Can be called only before `start`.

        An error of the listener does not prevent the change of state. It ends the application, and `wait` raises it.
        """
        self._require_unstarted()
        self._application.lifecycle.listener = listener

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Call `handler(error)` when an error ends a thread. Can be called only before `start`.

        Without a handler, the client shuts down. Kafka Streams: `setUncaughtExceptionHandler`.

        Parameters
        ----------
        handler : callable
            Returns a `StreamThreadExceptionResponse`. It is called in the thread that ends.

        Raises
        ------
        StateError
            If the application was started.

        Examples
        --------
        >>> from kstreams import StreamThreadExceptionResponse as Response
        >>> def answer(error):
        ...     return Response.REPLACE_THREAD if isinstance(error, OSError) else Response.SHUTDOWN_CLIENT
        >>> KafkaStreams(Topology(), {"application.id": "app"}).set_uncaught_exception_handler(answer)
        """
        self._require_unstarted()
        self._application.exception_handler = handler

    def start(self, *, once: bool = False, until_end: bool = False) -> None:
        """Check and create topics, load global tables, and start the threads.

        Parameters
        ----------
        once : bool
            Stop when the present records of the input topics, and all records that follow from them, are processed.
        until_end : bool
            As `once`, and then process the end of the input: windows close, and delayed results are written.

        Raises
        ------
        KStreamsError
            If a topic is missing or has the wrong settings, another process runs the application, or `start` was called
            before.

        Notes
        -----
        If this process runs the same application and state folder with another topology, that run is closed first: a
        cell of a notebook that is run again replaces the run that it started before.
        """
        client = self._require_unstarted()
        if once and until_end:
            raise ConfigError("once and until_end exclude each other: choose one")
        name = f"the application {self.config.application_id!r}"
        folder = str(state_folder(self.config).absolute())
        make_room(folder, self._source)
        note(folder, LocalRun(name, self._source, self._is_at_work, self.close))
        running = client.open(RunEnd.INPUT if until_end else RunEnd.ONCE if once else RunEnd.NEVER)
        self._client = running  # before the threads start: they call listeners, which may query stores
        running.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the end. Return True if it has come. Raises the error that ended the run."""
        has_ended = self._application.lifecycle.wait_for_end(timeout)
        error = self.error or self._application.lifecycle.failure
        if error is not None and has_ended:
            raise error
        return has_ended

    def close(self, timeout: float | None = None, *, leave_group: bool | None = None) -> bool:
        """Commit, close and stop. Kafka Streams: `close(CloseOptions)`.

        Parameters
        ----------
        timeout : float, optional
            The longest wait in seconds. None waits without a limit.
        leave_group : bool, optional
            True if other processes get the tasks immediately (`LEAVE_GROUP`). False if the tasks wait for this process
            until `session.timeout.ms` is over (`REMAIN_IN_GROUP`). Only a static member (`consumer.group.instance.id`)
            can remain, and it does by default. On Kafka, a static member cannot leave.

        Returns
        -------
        bool
            True if the application was closed within the timeout.

        Raises
        ------
        ConfigError
            If the process cannot leave the group, or cannot remain in it.

        Examples
        --------
        >>> from kstreams import KafkaStreams, Topology
        >>> KafkaStreams(Topology(), {"application.id": "app"}).close(leave_group=True)
        True
        """
        self._client.stop(leave_group=leave_group)
        return self._application.lifecycle.wait_for_end(timeout)

    def add_stream_thread(self) -> str | None:
        """Start another thread, which gets a share of the tasks. Kafka Streams: `addStreamThread`.

        Returns
        -------
        str or None
            The name of the thread. None if the application does not run, or its run is bounded.
        """
        return self._client.add_thread()

    def remove_stream_thread(self, timeout: float = 60.0) -> str | None:
        """Stop the newest thread when others have its tasks. Kafka Streams: `removeStreamThread`.

        Parameters
        ----------
        timeout : float
            The longest wait for the release of its tasks, in seconds.

        Returns
        -------
        str or None
            The name of the thread. None if the application does not run, its run is bounded, or it is the only thread.

        Raises
        ------
        TimeoutError
            If an operator does not return in time. The thread then ends later.
        """
        return self._client.remove_thread(timeout)

    def pause(self) -> None:
        """Process no records until `resume`. Commits and queries continue. Kafka Streams: `pause`."""
        self._application.paused.set()

    def resume(self) -> None:
        """Process records again. Kafka Streams: `resume`."""
        self._application.paused.clear()

    @property
    def is_paused(self) -> bool:
        """True from `pause` to `resume`."""
        return self._application.paused.is_set()

    def current_operators(self) -> str:
        """Return the operators that stream threads are in now, for which `close` waits."""
        return current_operators(self._client.threads)

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        """Return the threads with their tasks and positions."""
        return [
            ThreadMetadata(
                thread.name,
                tuple(TaskMetadata(task.id, dict(task.next_offsets)) for task in list(thread.tasks)),
                thread.state,
            )
            for thread in self._client.threads
        ]

    def metrics(self) -> dict[MetricName, MetricValue]:
        """Return the present values of all metrics by group, name and tags. Kafka Streams: `metrics`.

        They are the metrics of this process, which docs/reference/metrics.md lists. A value is a number or a text.
        """
        return application_metrics(self._client)

    def sensors(self) -> dict[tuple[str, str], Measured]:
        """Return the values of the sensors of processors, over all tasks, by (operator, sensor)."""
        return merged(task.task.sensors for thread in self._client.threads for task in list(thread.tasks))

    def progress(self) -> Progress:
        """Return the counters since `start`, and the lag. After the end, return the last values."""
        return self._client.progress()

    def __enter__(self) -> KafkaStreams:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _is_at_work(self) -> bool:
        return self.state is not State.CREATED and self.state not in TERMINAL

    def _require_unstarted(self) -> Client:
        """Return the client of an application that is not started. Raises StateError after the start."""
        client = self._client
        if self.state is not State.CREATED or isinstance(client, RunningClient):
            raise StateError(f"the application is {self.state.value}: this can be done once, before it is started")
        return client


def _ignore(event: RestoreProgress) -> None:
    """Do nothing: there is no listener."""
