"""`write_lines`: log lines in the processes that Spark starts for tasks, in the form that the application asks for."""

from __future__ import annotations

import logging

from kstreams.config import Config
from kstreams.structured_logs import LINE_FORMATS

_handler = logging.StreamHandler()


def write_lines(config: Config) -> None:
    """Write them to standard error by `logging.format`, unless the process has handlers of somebody else's.

    A process may work for another application next: the lines are those of the last one that asked.
    """
    form, root = LINE_FORMATS.get(config["logging.format"]), logging.getLogger()
    if form is None:
        root.removeHandler(_handler)
        return
    if not root.handlers:
        root.addHandler(_handler)
    _handler.setFormatter(form(config))
