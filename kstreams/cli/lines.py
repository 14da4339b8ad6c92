"""The lines of a command on standard error: log lines and what it tells its user, in the form that was asked for."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from kstreams.structured_logs import BriefLines, is_shown

if TYPE_CHECKING:
    from kstreams.config import Config

logger = logging.getLogger("kstreams.cli")

_DEBUG = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"


class LogFormat(StrEnum):
    """The values of `logging.format`."""

    BRIEF = "brief"
    HUMAN = "human"
    JSON = "json"


class _ErrorOutput:
    """Where log lines go, and whether what is told is one of them."""

    def __init__(self) -> None:
        self.handler: logging.Handler | None = None
        self.is_structured = self.is_json = self.is_debug = False


_lines = _ErrorOutput()


def begin(debug: bool) -> None:
    """Brief lines: our warnings, and what the user's own loggers say; with `debug` all, and longer ones.

    Handlers that there are already stay as they are.
    """
    root = logging.getLogger()
    _lines.is_debug = debug
    _lines.is_structured = _lines.is_json = False
    if not root.handlers:
        handler = _lines.handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(_DEBUG) if debug else BriefLines())
        root.addHandler(handler)
        root.setLevel(logging.DEBUG if debug else logging.INFO)
        if not debug:
            handler.addFilter(is_shown)
            logging.getLogger("kstreams").setLevel(logging.WARNING)
        logging.basicConfig = _yielding(handler, logging.basicConfig)
    if debug:
        logging.getLogger("py4j").setLevel(logging.INFO)


def _yielding(handler: logging.Handler, configure: Callable[..., None]) -> Callable[..., None]:
    """`logging.basicConfig` for who configures `logging` in an application: our handler does not stand in the way.

    `logging.info` and the like call it without arguments, where there is no handler.
    """

    def basic_config(**settings: object) -> None:
        if settings:
            logging.getLogger().removeHandler(handler)
        configure(**settings)

    return basic_config


def structure(config: Config) -> None:
    """From now on the form and the level that these settings ask for."""
    from kstreams.structured_logs import LINE_FORMATS

    root = logging.getLogger()
    if _lines.handler in root.handlers and not _lines.is_debug:
        root.setLevel(config["logging.level"])
    form = LINE_FORMATS.get(config["logging.format"])
    if form is None or _lines.handler is None:
        return
    _lines.handler.setFormatter(form(config))
    _lines.is_structured = True
    _lines.is_json = config["logging.format"] == "json"
    if not _lines.is_debug:
        logging.getLogger("kstreams").setLevel(logging.INFO)
    logging.captureWarnings(True)


def are_json() -> bool:
    """Whether each line is a JSON object, and nothing may stand before it."""
    return _lines.is_json


def are_kept() -> bool:
    """Whether lines are those of a log, in which no secret may stand."""
    return _lines.is_structured


def tell(text: str) -> None:
    """Tell the user something; a log line, where lines have a structure."""
    if _lines.is_structured:
        logger.info("%s", text)
    else:
        sys.stderr.write(f"{text}\n")


def fail(text: str, error: BaseException) -> None:
    """Say what has ended the command; the stack trace goes where it has a field of its own."""
    if _lines.is_structured:
        logger.error("%s", text, exc_info=error if _lines.is_json else None)
    else:
        sys.stderr.write(f"kstreams: {text}\n")


def stream() -> TextIO:
    """Where progress is written: standard error, or the log."""
    return _Told() if _lines.is_structured else sys.stderr


class _Told(io.StringIO):
    """Each text that is written is a log line."""

    def write(self, text: str, /) -> int:
        logger.info("%s", text.strip())
        return len(text)
