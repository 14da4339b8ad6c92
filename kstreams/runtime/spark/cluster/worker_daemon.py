"""The daemon that forks Spark's Python workers on this machine (`spark.python.daemon.module`).

It is PySpark's own daemon with two differences. The modules that every task needs are imported before workers are
forked, since imports take most of the time of a new worker. And a worker ends without a traceback on the user's
terminal if Spark has closed its connection, because Spark needs no more of its rows.

Invariant: these modules open nothing when they are imported, since forked processes would share files and databases.
NumPy and Arrow start threads, and start them again in a forked process.
"""

from __future__ import annotations

import importlib
import sys
import traceback

from pyspark import daemon

WORKER_MODULE = "pyspark.worker"
"""The module of workers that run functions of a query. Workers that plan a query start only once."""

PRELOADED = ("kstreams.runtime.spark.tasks.task_run", "kstreams.log.embedded.log", "kstreams.state.rocksdb")


class _Traceback:
    """The part of the module `traceback` that the daemon uses."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            traceback.print_exc()


if __name__ == "__main__":
    daemon.traceback = _Traceback
    if sys.argv[1:2] == [WORKER_MODULE]:
        for module in PRELOADED:
            importlib.import_module(module)
    daemon.manager()
