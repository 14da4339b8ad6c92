"""`Client`: an application in this process that is not started."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack

from kstreams.kernel.clock import Clock
from kstreams.log.api import Ability, Log
from kstreams.runtime.native.bounded_run import RunEnd
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.local_application import LocalApplication
from kstreams.runtime.native.progress import Progress, progress_of
from kstreams.runtime.native.running_client import RunningClient
from kstreams.runtime.native.runtime_context import open_context
from kstreams.runtime.native.state.locks import lock_alone, lock_shared
from kstreams.runtime.native.state.restore import OnRestore, RestoreProgress
from kstreams.runtime.native.thread.stream_thread import StreamThread

logger = logging.getLogger(__name__)


class Client:
    """An application that is not started: it has no threads. `open` returns the client that runs.

    Parameters
    ----------
    application : LocalApplication
    clock : Clock
    log : Log, optional
        The home of the topics. Default: the embedded log in `log.dir`.
    on_restore : callable
        Called with the progress of a restore after every batch.
    """

    failed_threads = 0
    threads: Sequence[StreamThread] = ()

    def __init__(self, application: LocalApplication, clock: Clock, log: Log | None, on_restore: OnRestore) -> None:
        self.application = application
        self._clock = clock
        self._log = log
        self._on_restore = on_restore

    def open(self, end: RunEnd = RunEnd.NEVER) -> RunningClient:
        """Check and create topics, load global tables, and create the threads. `RunningClient.start` starts them."""
        lifecycle = self.application.lifecycle
        lifecycle.move(State.REBALANCING)
        resources = ExitStack()
        try:
            return self._open(end, resources)
        except BaseException as error:
            self.application.error = error
            lifecycle.move(State.PENDING_ERROR)
            _close(resources)
            lifecycle.move(State.ERROR)
            raise

    def stop(self, *, leave_group: bool | None = None) -> None:
        """Close the application. If it is being opened, its threads end as soon as they are started."""
        state = self.application.lifecycle.state
        if self.application.close(leave_group, frozenset(Ability)) and state is State.CREATED:
            self.application.lifecycle.move(State.NOT_RUNNING)

    def add_thread(self) -> None:
        """Do nothing: threads are added while the application runs."""

    def remove_thread(self, timeout: float) -> None:
        """Do nothing: there are no threads."""

    def progress(self, *, with_lag: bool = True) -> Progress:
        """Return counters of zero."""
        return progress_of([], None)

    def _open(self, end: RunEnd, resources: ExitStack) -> RunningClient:
        application = self.application
        config = application.config
        restores: dict[tuple[str, str], RestoreProgress] = {}

        def on_restore(progress: RestoreProgress) -> None:
            restores[progress.task, progress.store] = progress
            self._on_restore(progress)

        config.warn_of_unused()
        folder = lock_shared(config) if end is RunEnd.NEVER else lock_alone(config)
        resources.callback(folder.release)
        resources.callback(application.registry.close)
        context = open_context(
            application.topology,
            config,
            self._clock,
            self._log,
            on_restore,
            resources,
            end=end,
            folder=folder.path,
        )
        return RunningClient(application, context, restores, resources)


def _close(resources: ExitStack) -> None:
    """Close resources after a failed start. Log an error of closing, because the error of the start is raised."""
    try:
        resources.close()
    except BaseException as error:
        logger.error("the application could not release its resources: %s", error)
