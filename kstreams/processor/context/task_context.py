"""`TaskContext`: the parts of a task that all its operators share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kstreams.errors import StateError
from kstreams.os.private import private_folder
from kstreams.processor.api.metrics import Sensor
from kstreams.processor.context.application import Application
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.failures import Failures
from kstreams.processor.context.forwarded import ForwardedCounts
from kstreams.processor.context.task_punctuations import TaskPunctuations


class CommitRequest:
    """The request of a task's processors for a commit; it holds until the next flush.

    Examples
    --------
    >>> request = CommitRequest()
    >>> request.make()
    >>> request.is_made
    True
    """

    __slots__ = ("is_made",)

    def __init__(self) -> None:
        self.is_made = False

    def make(self) -> None:
        """Ask for a commit soon."""
        self.is_made = True

    def clear(self) -> None:
        """Clear the request, as the commit follows."""
        self.is_made = False


T = TypeVar("T")

_ROWS_PER_SEND = 1_000  # rows between two checks whether the output is large enough to be sent


@dataclass(frozen=True, slots=True, eq=False)
class TaskContext:
    """The parts of a task that its operators use.

    Parameters
    ----------
    application : Application
    task_id : str
    partition : int
    stores, global_stores : mapping of str to StateStore
        Stores by name.
    state_dir : Path or None
        The task's folder on the local disk.
    current : CurrentRecord
    failures : Failures
    punctuations : TaskPunctuations
    send_if_many : callable
        Sends the output if there is enough of it.
    """

    application: Application
    task_id: str
    partition: int
    stores: Mapping[str, object]
    global_stores: Mapping[str, object]
    state_dir: Path | None
    current: CurrentRecord
    failures: Failures
    punctuations: TaskPunctuations
    send_if_many: Callable[[], None]
    sensors: dict[tuple[str, str], Sensor] = field(default_factory=dict)
    """The sensors of processors, by node and name."""
    commit_request: CommitRequest = field(default_factory=CommitRequest)
    forwarded: ForwardedCounts | None = None
    """The counters of forwarded records; None if the settings do not ask for them."""

    def sending_meanwhile(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield the rows that one record or a flush releases, possibly very many; send output as it accumulates."""
        for number, row in enumerate(rows, 1):
            yield row
            if not number % _ROWS_PER_SEND:
                self.send_if_many()

    def state_folder(self) -> Path:
        """Return the task's folder on the local disk; the first call creates it."""
        if self.state_dir is None:
            raise StateError(f"Task {self.task_id} keeps nothing on disk, so that it has no folder for processors.")
        private_folder(self.state_dir)
        return self.state_dir

    def drop(self, node: str, reason: str, count: int = 1) -> None:
        """Count and log records that a node drops, the current one last; write a dead letter if the settings ask for
        it.
        """
        if self.failures.keeps_dropped:
            self.failures.dropped(self.current.error_context(node), reason, count)
        else:
            self.failures.drops.add(node, reason, self.current.place, count)
