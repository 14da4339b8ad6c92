"""What happens when an error ends a thread: the response of the user's handler, and that of another member."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from kstreams.errors import KStreamsError

logger = logging.getLogger(__name__)


class StreamThreadExceptionResponse(Enum):
    """What is to happen. Kafka Streams: `StreamThreadExceptionResponse`."""

    REPLACE_THREAD = "REPLACE_THREAD"
    """A new thread resumes from the last commit. An error that is permanent comes again."""
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    """This application in this process stops, in state ERROR."""
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"
    """So do all others of the same `application.id`."""


UncaughtExceptionHandler: TypeAlias = Callable[[BaseException], StreamThreadExceptionResponse]


class ApplicationShutdownError(KStreamsError):
    """Another member of the application asked all of them to stop."""


def response_to(error: BaseException, handler: UncaughtExceptionHandler) -> StreamThreadExceptionResponse:
    """The response of the user's handler; an error that it does not get, or fails on, stops the client."""
    if isinstance(error, ApplicationShutdownError) or not isinstance(error, Exception):
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT
    try:
        return StreamThreadExceptionResponse(handler(error))
    except BaseException:
        logger.exception("the handler of uncaught exceptions gave no answer, so the client stops")
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT


def shut_down_client(error: BaseException) -> StreamThreadExceptionResponse:
    """The handler unless the user gives one."""
    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT


def clear_frames(error: BaseException | None) -> None:
    """Empty the frames of an error: an iterator in one of them would keep the lock of a store that is reopened."""
    visited = set[int]()  # an error that is raised again while a later one is handled is a cause of its own cause
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
