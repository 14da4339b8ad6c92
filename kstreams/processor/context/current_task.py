"""`current_task`: the task for which this thread, or this coroutine, runs. Log lines name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CURRENT: ContextVar[str | None] = ContextVar("kstreams_task", default=None)


def current_task() -> str | None:
    """Return the id of the task; None outside of all tasks.

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
    """Make a task the current task within the block."""
    token = _CURRENT.set(task)
    try:
        yield
    finally:
        _CURRENT.reset(token)
