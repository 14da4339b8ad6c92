"""Garbage collection at longer intervals, for live state that creates no cycles, and none during scans."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_THRESHOLDS = 50_000, 20, 100
"""With a million live objects, Python's thresholds (700, 10, 10) added half of the time of the work itself."""


@contextmanager
def infrequent_garbage_collection() -> Iterator[None]:
    """Collect garbage at longer intervals inside the block, in a process that runs the application alone."""
    usual = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Collect no garbage inside the block, in any thread. For scans, which create many objects and no cycles.

    A search for cycles among a million objects takes as long as their creation.
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
    """Collect garbage at longer intervals in a worker process of Spark, and exclude the loaded modules from it.

    PySpark collects garbage after every task. A search through all modules takes longer than a small task.
    """
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()
    gc.freeze()
