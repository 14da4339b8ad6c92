"""Where the folders of tasks lie on the disk of an executor, and how those go that nobody has used for long."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path

from kstreams.errors import StateError
from kstreams.kernel.clock import SystemClock
from kstreams.runtime.spark.tasks.task_folder import TaskFolder

UNUSED_SECONDS = 7 * 86_400


def task_place(chosen: str | None, checkpoint: str, checkpoint_id: str, task: str) -> Path:
    """The folder of a task on this machine: the same for all workers of an executor.

    Parameters
    ----------
    chosen : str or None
        Folder that the user chose; None for Spark's local ones, which go when the executor ends.
    checkpoint, checkpoint_id : str
        Name the application's state, wherever it is read from.
    task : str
    """
    root = local_folder(chosen, task) / f"kstreams-state-{os.getuid()}"
    _remove_unused_once(root)
    name = hashlib.blake2b(f"{checkpoint} {checkpoint_id}".encode(), digest_size=8).hexdigest()
    return root / name / task


def local_folder(chosen: str | None, task: str) -> Path:
    """The folder that the user chose, else one of those on the disks that Spark may use: tasks are spread over them."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")
    return Path(chosen or folders[zlib.crc32(task.encode()) % len(folders)])


@cache
def _remove_unused_once(root: Path) -> None:
    remove_unused(root, SystemClock().wall_ms() // 1000 - UNUSED_SECONDS)


def remove_unused(root: Path, before_s: float) -> None:
    """Delete the folders of tasks that were used last before a time; those that somebody holds stay."""
    for lock in root.glob("*/*/.lock"):
        with suppress(OSError, StateError):
            if lock.stat().st_mtime < before_s:
                with TaskFolder(lock.parent):
                    shutil.rmtree(lock.parent)
                lock.parent.parent.rmdir()
