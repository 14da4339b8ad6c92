"""`JsonLines` and `HumanLines`: formatters of `logging` that add the application, the thread and the task to each line.

`kstreams run --log-format` uses them. In your own program, set one on a handler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kstreams.config import Config, masked
from kstreams.processor.context.current_task import current_task

_encode = msgspec.json.Encoder(enc_hook=str).encode
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class _ApplicationLines(logging.Formatter):
    """Lines with the application, and without the secrets of its configuration."""

    def __init__(self, config: Config | Mapping[str, Any] | None = None, form: str | None = None) -> None:
        super().__init__(form)
        self._settings = Config.of(config)
        self._application: str | None = self._settings["application.id"]

    def masked(self, text: str) -> str:
        """Replace the secrets of the configuration in a text."""
        return masked(text, self._settings.explicit)


class JsonLines(_ApplicationLines):
    """Lines that are JSON objects: time (UTC), level, logger, message, application, process, thread.

    Lines of a task also have the task. `exception` is the stack trace of an error, `stack` the one of `stack_info`, and
    `extra` the `extra` of the call. Secrets of the configuration are shown as `****`.

    Parameters
    ----------
    config : Config or mapping, optional
        The configuration of the application.

    Examples
    --------
    >>> lines = JsonLines({"application.id": "shop", "sasl.password": "tiger"})
    >>> line = lines.format(logging.makeLogRecord({"msg": "no way in with %s", "args": ("tiger",), "created": 0.5}))
    >>> fields = msgspec.json.decode(line)
    >>> fields["time"], fields["message"], fields["application"]
    ('1970-01-01T00:00:00.500Z', 'no way in with ****', 'shop')
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "level": record.levelname,
            "logger": record.name,
            "message": self.masked(record.getMessage()),
            "application": self._application,
            "process": record.process,
            "thread": record.threadName,
            "task": current_task(),
            "exception": self._exception(record),
            "stack": record.stack_info and self.masked(record.stack_info),
            "extra": self._extra(record),
        }
        return _json({name: value for name, value in fields.items() if value is not None})

    def _exception(self, record: logging.LogRecord) -> str | None:
        if record.exc_info and record.exc_info[0] is not None:
            return self.masked(self.formatException(record.exc_info))
        return None if record.exc_text is None else self.masked(record.exc_text)

    def _extra(self, record: logging.LogRecord) -> object:
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return msgspec.Raw(self.masked(_json(extra)).encode()) if extra else None


def _json(fields: Mapping[str, object]) -> str:
    """Return a JSON object; values that JSON cannot hold, such as surrogates and cycles, become text."""
    return _encode({name: _value(value) for name, value in fields.items()}).decode()


def _value(value: Any) -> msgspec.Raw:
    try:
        return msgspec.Raw(_encode(value))
    except (UnicodeEncodeError, RecursionError):
        return msgspec.Raw(_encode(str(value).encode(errors="backslashreplace").decode()))


class HumanLines(_ApplicationLines):
    """Each line starts with time, level, application, thread and task; a stack trace follows on further lines.

    Parameters
    ----------
    config : Config or mapping, optional
        The configuration of the application.

    Examples
    --------
    >>> lines = HumanLines({"application.id": "shop"})
    >>> record = {"name": "till", "msg": "closed", "levelname": "INFO", "threadName": "shop-StreamThread-1"}
    >>> lines.format(logging.makeLogRecord(record)).split(" ", 2)[2]
    'INFO shop shop-StreamThread-1 till: closed'
    """

    def __init__(self, config: Config | Mapping[str, Any] | None = None) -> None:
        super().__init__(config, "%(asctime)s %(levelname)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        return self.masked(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the first line of the text."""
        task = current_task()
        places = (self._application, record.threadName, task and f"task {task}", record.name)
        return f"{super().formatMessage(record)} {' '.join(filter(None, places))}: {record.message}"


LINE_FORMATS: dict[str, Callable[[Config], logging.Formatter]] = {"human": HumanLines, "json": JsonLines}
"""The formatters by value of `logging.format`; the command line adds `brief`."""
