"""`BriefLines`: the formatter of the log lines of commands, and `is_shown`: the filter of what their users see."""

from __future__ import annotations

import logging
from functools import lru_cache

from kstreams.modules.installed import is_installed


def is_shown(record: logging.LogRecord) -> bool:
    """Return whether a line is shown: installed packages show warnings only, unless their logger has a level.

    Examples
    --------
    >>> line = {"name": "urllib3", "levelno": logging.INFO, "pathname": logging.__file__}
    >>> is_shown(logging.makeLogRecord(line)), is_shown(logging.makeLogRecord({**line, "pathname": "app.py"}))
    (False, True)
    """
    return record.levelno >= logging.WARNING or not _is_installed(record.pathname) or _has_level(record.name)


_is_installed = lru_cache(maxsize=1024)(is_installed)


def _has_level(name: str) -> bool:
    """Return whether a logger, or a parent except the root, has a level."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None and logger.parent is not None:
        if logger.level:
            return True
        logger = logger.parent
    return False


class BriefLines(logging.Formatter):
    """The message after its origin: `kstreams`, or the level and name of the logger.

    Examples
    --------
    >>> BriefLines().format(logging.makeLogRecord({"name": "till", "msg": "closed", "levelname": "INFO"}))
    'INFO till: closed'
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the first line of the text."""
        is_ours = record.name.partition(".")[0] == "kstreams"
        return f"{'kstreams' if is_ours else f'{record.levelname} {record.name}'}: {record.message}"
