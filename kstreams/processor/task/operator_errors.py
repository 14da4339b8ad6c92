"""`OperatorErrors`: turns what an operator raises into an error that names it, its line and the record."""

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
        """Operators work inside: an error becomes a ProcessingError; afterwards no record is the current one."""
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
        """The name of the operator that a thread is in which stands at a frame."""
        return self._code.running_operator(frame)

    def described(self, name: str) -> str:
        """An operator as errors name it."""
        return operator_at(name, self._declared_at.get(name))


def sending_meanwhile(send: Callable[[], None]) -> Callable[[], None]:
    """`send` for calls while operators work: its errors are none of theirs, and nothing for their error handlers."""

    def send_meanwhile() -> None:
        try:
            send()
        except Exception as error:
            raise _NotSent(error) from error

    return send_meanwhile


class _NotSent(BaseException):
    """Carries an error of the topics past the operators that are at work."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error
