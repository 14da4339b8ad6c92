"""An application whose one thread takes a round when the test says so, under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kstreams.config import Config
from kstreams.kernel.clock import ManualClock
from kstreams.runtime.native.group.messages import ProcessState
from kstreams.runtime.native.group.ungrouped_commits import UngroupedCommits
from kstreams.runtime.native.job import Job, open_job
from kstreams.runtime.native.tasks.alignment import Alignment
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.stream_thread import StreamThread
from tests.native.world import World


class Stepped:
    """A thread that stands still between calls."""

    def __init__(self, thread: StreamThread, clock: ManualClock) -> None:
        self.thread, self.clock = thread, clock

    def work(self) -> None:
        """Process and commit all that is there."""
        busy = True
        while busy:
            self.thread.round()
            busy = self.thread.is_busy
            while self.thread.is_busy:
                self.thread.round()
            self.thread.commit()

    def wait(self, milliseconds: int) -> None:
        """Let time pass, and work."""
        self.clock.advance(milliseconds)
        self.work()


@contextmanager
def stepped(world: World, topology: Any, clock: ManualClock, **settings: Any) -> Iterator[Stepped]:
    """Open an application as `KafkaStreams` does, with one thread; closing it commits nothing."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    config = Config.of({**world.settings, "poll.ms": 0, **given})
    with ExitStack() as resources:
        job = open_job(topology, config, clock, None, lambda _: None, resources)
        yield Stepped(one_thread(job, resources), clock)


def one_thread(job: Job, resources: ExitStack) -> StreamThread:
    """A thread with all tasks of an application, open; its rounds are the caller's."""
    manager = TaskManager(job, [1], lambda: None)
    manager.alignment = Alignment(job.layout, ())  # nobody leads a group here, and what comes is no history
    resources.callback(manager.close)
    alone = UngroupedCommits(
        job.log, job.admin, job.application.id, ProcessState(job.process), transactional=job.exactly_once
    )
    resources.callback(alone.close)
    thread = StreamThread("stepped", 1, job, manager, alone)
    resources.callback(thread.close)
    manager.start([thread])
    manager.assign(manager.tasks)
    thread.open()
    return thread
