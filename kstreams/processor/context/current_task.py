"""`current_task`: the task that the code of this thread, or of this coroutine, works for: log lines name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[str | None] = ContextVar("kstreams_task", default=None)


def current_task() -> str | None:
    """The id of the task; None outside of all tasks.

    Examples
    --------
    >>> with in_task("0_1"):
    ...     current_task()
    '0_1'
    >>> current_task() is None
    True
    """
    return _CURRENT.get()


@contextmanager
def in_task(task: str) -> Iterator[None]:
    """What is done inside is done for this task."""
    token = _CURRENT.set(task)
    try:
        yield
    finally:
        _CURRENT.reset(token)
