"""The daemon that forks Spark's Python workers on this machine (`spark.python.daemon.module`).

It is PySpark's own daemon, but for two things. What every task needs is imported before workers are forked, instead of
by each of them: it is most of what a new worker costs. And a worker to which Spark no longer listens, because it has
what it wanted, goes without a traceback on the user's terminal.

Invariant: what is imported here opens nothing. NumPy and Arrow start threads when they are imported, and restore them
in a forked process; files and databases would be shared.
"""

from __future__ import annotations

import importlib
import sys
import traceback

from pyspark import daemon

RUNS_TASKS = "pyspark.worker"
"""The workers that run functions of a query; workers that plan a query start only once."""

NEEDED = ("kstreams.runtime.spark.tasks.task_run", "kstreams.log.embedded.log", "kstreams.state.rocksdb")


class _Traceback:
    """The part of the module `traceback` that the daemon uses."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            traceback.print_exc()


if __name__ == "__main__":
    daemon.traceback = _Traceback
    if sys.argv[1:2] == [RUNS_TASKS]:
        for module in NEEDED:
            importlib.import_module(module)
    daemon.manager()
