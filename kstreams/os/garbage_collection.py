"""Less frequent garbage collection for processes with many live objects, and no collection during scans."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_THRESHOLDS = 50_000, 20, 100
"""The thresholds of `gc`. With a million live objects, Python's thresholds (700, 10, 10) added 50 % to the run time."""


@contextmanager
def infrequent_garbage_collection() -> Iterator[None]:
    """Collect garbage less often during the `with` block, in a process that runs only the application."""
    former_thresholds = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*former_thresholds)


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Collect no garbage during the `with` block, in any thread. For scans, which create many objects and no cycles.

    A search for cycles among a million objects takes as long as their creation.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@cache
def spare_worker() -> None:
    """Collect garbage less often in a worker process of Spark, and exclude the loaded modules.

    PySpark collects garbage after every task. A search through all modules takes longer than a small task.
    """
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()
    gc.freeze()
