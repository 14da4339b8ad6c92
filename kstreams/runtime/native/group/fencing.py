"""`bury`: ends what a dead process has left open, so that nobody waits for its transactions to time out."""

from __future__ import annotations

from kstreams.log.api import Log
from kstreams.runtime.native.group.assignment_topic import AssignmentTopic
from kstreams.runtime.native.group.messages import ProcessState


def transactional_id(application_id: str, process: str, thread: int) -> str:
    """The transactional id of a thread, from 1, of a process.

    Examples
    --------
    >>> transactional_id("flights", "5fa1", 2)
    'flights-5fa1-2'
    """
    return f"{application_id}-{process}-{thread}"


def bury(log: Log, application_id: str, topic: AssignmentTopic, state: ProcessState) -> None:
    """Abort what a dead process has left open, and forget it; should it still be alive, its producers are fenced.

    A producer that begins with a transactional id ends what its predecessor left.
    """
    for thread in range(1, state.capacity + 1):
        log.producer({"transactional.id": transactional_id(application_id, state.process, thread)}).close()
    topic.forget(state.process)
