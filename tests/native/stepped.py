"""An application whose one thread takes a round when the test says so, under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kstreams.config import Config
from kstreams.kernel.clock import ManualClock
from kstreams.runtime.native.group.messages import ProcessState
from kstreams.runtime.native.group.ungrouped_commits import UngroupedCommits
from kstreams.runtime.native.runtime_context import RuntimeContext, open_context
from kstreams.runtime.native.tasks.task_manager import TaskManager
from kstreams.runtime.native.thread.stream_thread import StreamThread
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment
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
        context = open_context(topology, config, clock, None, lambda _: None, resources)
        yield Stepped(one_thread(context, resources), clock)


def one_thread(context: RuntimeContext, resources: ExitStack) -> StreamThread:
    """A thread with all tasks of an application, open; its rounds are the caller's."""
    manager = TaskManager(context, [1], lambda: None)
    # nobody leads a group here, and what comes is no history
    manager.alignment = ProcessAlignment(context.topology.layout, ())
    resources.callback(manager.close)
    alone = UngroupedCommits(
        context.environment.log,
        context.environment.admin,
        context.environment.application_id,
        ProcessState(context.environment.process_id),
        transactional=context.environment.exactly_once,
    )
    resources.callback(alone.close)
    thread = StreamThread("stepped", 1, context, manager, alone)
    resources.callback(thread.close)
    manager.start([thread])
    manager.assign(manager.tasks)
    thread.open()
    return thread
