"""`fence_process`: aborts the open transactions of a dead process, so that no reader waits until they time out."""

from __future__ import annotations

from kstreams.log.api import Log
from kstreams.runtime.native.group.assignment_topic import AssignmentTopic
from kstreams.runtime.native.group.messages import ProcessState


def transactional_id(application_id: str, process: str, thread: int) -> str:
    """Return the transactional id of a thread of a process. Threads are counted from 1.

    Examples
    --------
    >>> transactional_id("flights", "5fa1", 2)
    'flights-5fa1-2'
    """
    return f"{application_id}-{process}-{thread}"


def fence_process(log: Log, application_id: str, topic: AssignmentTopic, state: ProcessState) -> None:
    """Abort the open transactions of a dead process, and remove its state. If it is alive, its producers are fenced.

    A new producer with the same transactional id aborts the transaction of the former producer.
    """
    for thread in range(1, state.capacity + 1):
        log.producer({"transactional.id": transactional_id(application_id, state.process, thread)}).close()
    topic.remove(state.process)
