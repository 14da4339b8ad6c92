"""`Connectors`: the sources and sinks of a running application, each in a thread beside the stream threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from kstreams.config import Config
from kstreams.connectors.herder import Herder, refuse_paused
from kstreams.connectors.task_status import TaskStatus
from kstreams.connectors.worker import Worker
from kstreams.connectors.workers import sink_worker, source_worker
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.connectors import ApplicationConnectors
from kstreams.runtime.parked_rows import ParkedRows

logger = logging.getLogger(__name__)


class Connectors:
    """The connectors of one application in this process.

    Parameters
    ----------
    topology : Topology
        With real names of topics, and bound serdes.
    config : Config
    log : Log
    clock : Clock
    resources : ExitStack
        Stops the connectors, and closes the clients that all tasks of a sink share.

    Attributes
    ----------
    streamed_topics : frozenset of str
        The internal topics of sources that streams read. Their records are deleted when they are processed.
    """

    def __init__(self, topology: Topology, config: Config, log: Log, clock: Clock, resources: ExitStack) -> None:
        name = config.application_id
        letters = config["errors.dead.letter.queue.topic.name"] or ""
        self._application_id = name
        connectors = ApplicationConnectors(topology, name)
        self.streamed_topics = connectors.streamed_topics()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._log = log
        self._clock = clock
        self._herders: list[Herder] = []
        self._sources = {
            connector.name: source_worker(connector, log, clock, letters) for connector in connectors.sources()
        }
        self._sinks = {
            connector.name: sink_worker(
                connector, log, clock, resources, letters, open_parking=partial(ParkedRows, log, clock), can_wait=True
            )
            for connector in connectors.sinks()
        }
        resources.callback(self.stop)

    def statuses(self) -> dict[str, Mapping[int, TaskStatus]]:
        """Return the counters of the tasks in this process, by connector and number of the task."""
        return {worker.name: worker.statuses() for worker in self._workers.values()}

    def read_sources(self) -> None:
        """Write everything that the sources have now to their topics.

        Raises
        ------
        ConnectorError
            If a connector is paused.
        """
        refuse_paused(self._workers, self._application_id)
        self._add_herder()
        for worker in self._sources.values():
            logger.info("reading %s to its end", worker.name)
            worker.run_to_end(self._stop)

    def write_sinks(self) -> None:
        """Write everything that the topics of the sinks have to the targets."""
        for worker in self._sinks.values():
            worker.run_to_end(self._stop)

    def start(self, on_failure: Callable[[BaseException], None]) -> None:
        """Run all connectors until `stop`, as members of their groups.

        Parameters
        ----------
        on_failure : callable
            Called with the error that ends a connector.
        """
        self._add_herder()
        for herder in self._herders:
            herder.start()
        for worker in self._workers.values():
            name = f"{self._application_id}-connector-{worker.name}"
            thread = threading.Thread(target=self._run, args=(worker, on_failure), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Let all connectors commit and end. May be called again."""
        self._stop.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        while self._herders:
            self._herders.pop().stop()

    def _add_herder(self) -> None:
        if self._workers:
            self._herders.append(Herder(self._workers, self._log, self._application_id, self._clock))

    @property
    def _workers(self) -> dict[str, Worker]:
        return self._sources | self._sinks

    def _run(self, worker: Worker, on_failure: Callable[[BaseException], None]) -> None:
        try:
            worker.run(self._stop)
        except BaseException as error:
            logger.error("the connector %s died: %s", worker.name, error)
            on_failure(error)
