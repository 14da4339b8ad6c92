"""The lines of a command on standard error: log lines and messages, in the form of `logging.format`."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from kstreams.brief_logs import BriefLines, is_shown

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
    """The handler of log lines, and the form of messages."""

    def __init__(self) -> None:
        self.handler: logging.Handler | None = None
        self.is_structured = self.is_json = self.is_debug = False


_lines = _ErrorOutput()


def begin(debug: bool) -> None:
    """Write brief lines: warnings of kstreams, and lines of the user's own loggers. With `debug`, write all lines.

    Existing handlers are not changed.
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
    """Return `logging.basicConfig` that removes our handler, so that an application may configure `logging`.

    `logging.info` and similar functions call it without arguments; then the handler stays.
    """

    def basic_config(**settings: object) -> None:
        if settings:
            logging.getLogger().removeHandler(handler)
        configure(**settings)

    return basic_config


def structure(config: Config) -> None:
    """Use the form and the level of these settings from now on."""
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
    """Return whether each line is a JSON object, and nothing else may be written."""
    return _lines.is_json


def are_structured() -> bool:
    """Return whether the lines are structured log lines, which must contain no secret."""
    return _lines.is_structured


def tell(text: str) -> None:
    """Write a message to the user, as a log line if lines are structured."""
    if _lines.is_structured:
        logger.info("%s", text)
    else:
        sys.stderr.write(f"{text}\n")


def fail(text: str, error: BaseException) -> None:
    """Write the error that ended the command. JSON lines have a field for the stack trace."""
    if _lines.is_structured:
        logger.error("%s", text, exc_info=error if _lines.is_json else None)
    else:
        sys.stderr.write(f"kstreams: {text}\n")


def stream() -> TextIO:
    """Return the stream for progress: standard error, or the log."""
    return _LogStream() if _lines.is_structured else sys.stderr


class _LogStream(io.StringIO):
    """A stream that writes each text as a log line."""

    def write(self, text: str, /) -> int:
        logger.info("%s", text.strip())
        return len(text)
