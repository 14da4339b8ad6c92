"""What the threads of one running application share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kstreams.clock import Clock
from kstreams.config import Config
from kstreams.log.api import Consumer, Log, Producer
from kstreams.runtime.native.bounded import Bounds
from kstreams.runtime.native.global_tables import GlobalTables
from kstreams.runtime.native.layout import Layout
from kstreams.runtime.native.restore import OnRestore
from kstreams.state import StateLimits


@dataclass(frozen=True)
class Job:
    """A running application.

    Parameters
    ----------
    config : Config
    clock : Clock
    log : Log
    layout : Layout
    state_folder : Path
    limits : StateLimits
        Memory that the stores of all tasks may use together.
    global_tables : GlobalTables
    bounds : Bounds or None
        Where the run ends; None when it does not.
    on_restore : callable
        Told how restores go.
    """

    config: Config
    clock: Clock
    log: Log
    layout: Layout
    state_folder: Path
    limits: StateLimits
    global_tables: GlobalTables
    bounds: Bounds | None
    on_restore: OnRestore

    @property
    def exactly_once(self) -> bool:
        """Whether outputs, state and offsets commit as one."""
        return bool(self.config["processing.guarantee"] == "exactly_once_v2")

    def consumer(self, role: str) -> Consumer:
        """A consumer with the settings for its role: main, restore or global."""
        return self.log.consumer({**self.config.prefixed("consumer."), **self.config.prefixed(f"{role}.consumer.")})

    def producer(self, thread: int) -> Producer:
        """The producer of a thread: transactional where exactly-once is asked for."""
        settings = self.config.prefixed("producer.")
        if self.exactly_once:
            settings["transactional.id"] = f"{self.config.application_id}-{thread}"
        return self.log.producer(settings)
