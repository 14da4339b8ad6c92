"""Log lines for who runs an application by hand: what its own loggers say, and warnings of everybody else."""

from __future__ import annotations

import logging
from functools import lru_cache

from kstreams.package_folder import is_installed


def is_shown(record: logging.LogRecord) -> bool:
    """Whether a line is shown: of installed packages warnings only, unless somebody set a level for them.

    Examples
    --------
    >>> line = {"name": "urllib3", "levelno": logging.INFO, "pathname": logging.__file__}
    >>> is_shown(logging.makeLogRecord(line)), is_shown(logging.makeLogRecord({**line, "pathname": "app.py"}))
    (False, True)
    """
    return record.levelno >= logging.WARNING or not _is_installed(record.pathname) or _has_level(record.name)


_is_installed = lru_cache(maxsize=1024)(is_installed)


def _has_level(name: str) -> bool:
    """Whether a logger, or one above it apart from the root, has a level of its own."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None and logger.parent is not None:
        if logger.level:
            return True
        logger = logger.parent
    return False


class BriefLines(logging.Formatter):
    """The message alone, after who says it: kstreams, or level and name of the user's logger.

    Examples
    --------
    >>> BriefLines().format(logging.makeLogRecord({"name": "till", "msg": "closed", "levelname": "INFO"}))
    'INFO till: closed'
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Its first line."""
        is_ours = record.name.partition(".")[0] == "kstreams"
        return f"{'kstreams' if is_ours else f'{record.levelname} {record.name}'}: {record.message}"
