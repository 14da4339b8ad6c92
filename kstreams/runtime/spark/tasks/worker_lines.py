"""`write_lines`: log lines in the processes that Spark starts for tasks, in the form that the application asks for."""

from __future__ import annotations

import logging

from kstreams.config import Config
from kstreams.structured_logs import LINE_FORMATS, BriefLines, is_shown

_handler = logging.StreamHandler()
_handler.addFilter(is_shown)


def write_lines(config: Config) -> None:
    """Write them to standard error by `logging.format`, unless the process has handlers of somebody else's.

    A process may work for another application next: the lines are those of the last one that asked.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_handler)
        logging.getLogger("kstreams").setLevel(logging.WARNING)
    if _handler in root.handlers:
        root.setLevel(config["logging.level"])
    form = LINE_FORMATS.get(config["logging.format"])
    _handler.setFormatter(BriefLines() if form is None else form(config))
