"""`OperatorErrors`: turns errors of operators into errors that name the operator, its line and the record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kstreams.errors import CorruptStateError, ProcessingError, RegistryError
from kstreams.kernel.source_line import operator_at
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.current_task import in_task
from kstreams.processor.context.operator_code import OperatorCode
from kstreams.processor.topology.nodes import SubTopology


class OperatorErrors:
    """The errors of the operators of one task.

    Parameters
    ----------
    task_id : str
    sub_topology : SubTopology
    current : CurrentRecord
    code : OperatorCode
    """

    def __init__(self, task_id: str, sub_topology: SubTopology, current: CurrentRecord, code: OperatorCode) -> None:
        self._task_id = task_id
        self._current = current
        self._code = code
        self._declared_at = {node.name: node.declared_at for node in sub_topology.nodes}

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Run operators within the block. Errors become a ProcessingError; no record is current afterwards."""
        try:
            with in_task(self._task_id):
                yield
        except (ProcessingError, CorruptStateError, RegistryError):
            raise
        except _NotSent as failed:
            raise failed.error from failed.error.__cause__
        except Exception as error:
            name = self._code.failed_operator(error.__traceback__) or f"task {self._task_id}"
            raise ProcessingError(name, self._declared_at.get(name), self._current.place(), error) from error
        finally:
            self._current.leave()

    def running(self, frame: FrameType) -> str | None:
        """Return the name of the operator that a thread at this frame is running."""
        return self._code.running_operator(frame)

    def described(self, name: str) -> str:
        """Describe an operator for errors."""
        return operator_at(name, self._declared_at.get(name))


def sending_meanwhile(send: Callable[[], None]) -> Callable[[], None]:
    """Return `send` for calls while operators run: its errors are not theirs, so no error handler gets them."""

    def send_meanwhile() -> None:
        try:
            send()
        except Exception as error:
            raise _NotSent(error) from error

    return send_meanwhile


class _NotSent(BaseException):
    """The carrier of a topic's error past the running operators."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error
