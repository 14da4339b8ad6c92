"""When garbage is collected: less often where live state is, which makes no cycles, and not at all within a scan."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_THRESHOLDS = 50_000, 20, 100
"""With a million live objects Python's own (700, 10, 10) cost as much as half of the work itself."""


@contextmanager
def infrequent_garbage_collection() -> Iterator[None]:
    """Collect garbage less often inside; for a process that runs nothing but the application."""
    usual = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Collect no garbage inside: for what makes a million objects and no cycle, as a scan does.

    Looking for cycles among them takes as long as making them. It is paused for all threads of the process.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@cache
def spare_worker() -> None:
    """The same for good, once, in a worker process of Spark; what it has loaded is looked at no more.

    PySpark collects garbage after every task, and looking through all modules takes longer than a small task.
    """
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()
    gc.freeze()
