"""`KafkaStreams`: a topology at work in this process."""

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
from kstreams.runtime.native.observation import places
from kstreams.runtime.native.progress import Progress
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.state.locks import state_folder
from kstreams.runtime.native.state.restore import OnRestore, RestoreProgress
from kstreams.runtime.native.stores.metadata import TaskMetadata, ThreadMetadata
from kstreams.runtime.native.stores.queryable_stores import QueryableStores
from kstreams.runtime.native.uncaught_exceptions import UncaughtExceptionHandler
from kstreams.runtime.running_here import LocalRun, make_room, note


class KafkaStreams(QueryableStores, metaclass=Advising):
    """Runs a topology in threads of this process. Kafka Streams: `KafkaStreams`.

    Parameters
    ----------
    topology : Topology or StreamsBuilder
        What to run.
    config : Config or mapping
        At least `application.id`.
    log : Log, optional
        Home of the topics; default: the embedded log in `log.dir`.
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
        flow: Topology = built(topology, settings, "KafkaStreams")
        refuse_feeds(flow.feeds, "native")
        self._source = topology
        application = LocalApplication(flow, settings)
        super().__init__(application, Client(application, clock or SystemClock(), log, on_restore or _ignore))
        of_one_process(self, f"The application {settings.application_id!r}", StateError)

    @property
    def error(self) -> BaseException | None:
        """What ended the application in state ERROR."""
        return self._application.error

    def set_state_listener(self, listener: StateListener) -> None:
        """Call `listener(new, old)` at every change of state; only before `start`.

        What a listener raises keeps no change from happening: a start ends with it, and `wait` raises it.
        """
        self._unstarted()
        self._application.life.listener = listener

    def set_uncaught_exception_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Call `handler(error)` when an error ends a thread: it decides what happens; only before `start`.

        Without a handler, the client shuts down. Kafka Streams: `setUncaughtExceptionHandler`.

        Parameters
        ----------
        handler : callable
            Returns a `StreamThreadExceptionResponse`; it is called in the thread that dies.

        Raises
        ------
        StateError
            When the application was started.

        Examples
        --------
        >>> from kstreams import StreamThreadExceptionResponse as Response
        >>> def answer(error):
        ...     return Response.REPLACE_THREAD if isinstance(error, OSError) else Response.SHUTDOWN_CLIENT
        >>> KafkaStreams(Topology(), {"application.id": "app"}).set_uncaught_exception_handler(answer)
        """
        self._unstarted()
        self._application.exception_handler = handler

    def start(self, *, once: bool = False, until_end: bool = False) -> None:
        """Check and create topics, load global tables, and start the threads.

        Parameters
        ----------
        once : bool
            Stop when everything that is in the input topics now, and all that follows from it, is processed.
        until_end : bool
            The same, but the input is then over for good: windows close, what waits is written.

        Raises
        ------
        KStreamsError
            When a topic is missing or does not fit, another process runs the application, or `start` was called before.

        Notes
        -----
        A run of the same application and state folder in this process, by another topology, is closed first: a cell of
        a notebook that is run again replaces what it started before.
        """
        client = self._unstarted()
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
        """Wait up to `timeout` seconds until the application has stopped; whether it has. Raises what ended it."""
        ended = self._application.life.wait_for_end(timeout)
        error = self.error or self._application.life.failure
        if error is not None and ended:
            raise error
        return ended

    def close(self, timeout: float | None = None, *, leave_group: bool | None = None) -> bool:
        """Commit, close and stop. Kafka Streams: `close(CloseOptions)`.

        Parameters
        ----------
        timeout : float, optional
            For how many seconds to wait; None waits as long as it takes.
        leave_group : bool, optional
            Whether other processes get the tasks at once (`LEAVE_GROUP`), or wait for this one until
            `session.timeout.ms` is over (`REMAIN_IN_GROUP`). Only a static member (`consumer.group.instance.id`) can
            remain, and it does by default; Kafka's client lets no static member leave.

        Returns
        -------
        bool
            Whether all was closed within the timeout.

        Raises
        ------
        ConfigError
            When the process cannot leave the group, or cannot remain in it.

        Examples
        --------
        >>> from kstreams import KafkaStreams, Topology
        >>> KafkaStreams(Topology(), {"application.id": "app"}).close(leave_group=True)
        True
        """
        self._client.stop(leave_group=leave_group)
        return self._application.life.wait_for_end(timeout)

    def add_stream_thread(self) -> str | None:
        """Start a further thread, which gets its part of the tasks. Kafka Streams: `addStreamThread`.

        Returns
        -------
        str or None
            Its name; None when the application is not running, or its run is bounded.
        """
        return self._client.add_thread()

    def remove_stream_thread(self, timeout: float = 60.0) -> str | None:
        """Stop the thread that came last, when others have its tasks. Kafka Streams: `removeStreamThread`.

        Parameters
        ----------
        timeout : float
            For how many seconds to wait for it to give them back.

        Returns
        -------
        str or None
            Its name; None when the application is not running, its run is bounded, or it is the only thread.

        Raises
        ------
        TimeoutError
            When an operator does not return in time; the thread ends later.
        """
        return self._client.remove_thread(timeout)

    def pause(self) -> None:
        """Process no further records until `resume`; commits and queries go on. Kafka Streams: `pause`."""
        self._application.paused.set()

    def resume(self) -> None:
        """Process records again."""
        self._application.paused.clear()

    @property
    def is_paused(self) -> bool:
        """Whether it was paused and not resumed."""
        return self._application.paused.is_set()

    def places(self) -> str:
        """The operators that stream threads are in at this moment: what a `close` waits for."""
        return places(self._client.threads)

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        """The threads with their tasks and positions."""
        return [
            ThreadMetadata(
                thread.name,
                tuple(TaskMetadata(task.id, dict(task.next_offsets)) for task in list(thread.tasks)),
                thread.state,
            )
            for thread in self._client.threads
        ]

    def metrics(self) -> dict[MetricName, MetricValue]:
        """The values of all metrics now, by group, name and tags. Kafka Streams: `metrics`.

        Those of threads, tasks and topics are of this process; docs/metrics.md lists them. A value is a number or a
        text.
        """
        return application_metrics(self._client)

    def sensors(self) -> dict[tuple[str, str], Measured]:
        """What the sensors of processors have seen in all tasks together, by (operator, sensor)."""
        return merged(task.task.sensors for thread in self._client.threads for task in list(thread.tasks))

    def progress(self) -> Progress:
        """Counters since `start`, and the lag; after the end, as they were then."""
        return self._client.progress()

    def __enter__(self) -> KafkaStreams:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _is_at_work(self) -> bool:
        return self.state is not State.CREATED and self.state not in TERMINAL

    def _unstarted(self) -> Client:
        """Return the client that is not started. Raises StateError after the start."""
        client = self._client
        if self.state is not State.CREATED or isinstance(client, RunningClient):
            raise StateError(f"the application is {self.state.value}: this can be done once, before it is started")
        return client


def _ignore(event: RestoreProgress) -> None:
    """Without a listener."""
