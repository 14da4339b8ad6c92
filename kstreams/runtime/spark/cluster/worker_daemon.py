"""What Spark starts to fork its Python workers (`spark.python.daemon.module`), on this machine.

It is PySpark's own daemon, but for one thing: a worker to which Spark no longer listens, because it has what it wanted,
goes without a traceback on the user's terminal.
"""

from __future__ import annotations

import sys
import traceback

from pyspark import daemon


class _Traceback:
    """The module `traceback`, as far as the daemon uses it."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            traceback.print_exc()


if __name__ == "__main__":
    daemon.traceback = _Traceback
    daemon.manager()
