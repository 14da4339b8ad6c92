"""`response_to`: the response to an error that ends a thread, by the user's handler."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from kstreams.errors import KStreamsError

logger = logging.getLogger(__name__)


class StreamThreadExceptionResponse(Enum):
    """The response to an error that ends a thread. Kafka Streams: `StreamThreadExceptionResponse`."""

    REPLACE_THREAD = "REPLACE_THREAD"
    """A new thread resumes from the last commit. A permanent error occurs again."""
    SHUTDOWN_CLIENT = "SHUTDOWN_CLIENT"
    """The application stops in this process, in state ERROR."""
    SHUTDOWN_APPLICATION = "SHUTDOWN_APPLICATION"
    """The application stops in all processes, in state ERROR."""


UncaughtExceptionHandler: TypeAlias = Callable[[BaseException], StreamThreadExceptionResponse]


class ApplicationShutdownError(KStreamsError):
    """Another process of the application has requested that all processes stop."""


def response_to(error: BaseException, handler: UncaughtExceptionHandler) -> StreamThreadExceptionResponse:
    """Return the response of the user's handler. If it fails, or must not see the error, the client shuts down."""
    if isinstance(error, ApplicationShutdownError) or not isinstance(error, Exception):
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT
    try:
        return StreamThreadExceptionResponse(handler(error))
    except BaseException:
        logger.exception("the handler of uncaught exceptions has failed, so the client stops")
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT


def shut_down_client(error: BaseException) -> StreamThreadExceptionResponse:
    """Stop the client: the default handler."""
    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT


def clear_frames(error: BaseException | None) -> None:
    """Clear the frames of an error and its causes. An iterator in a frame would keep the lock of a store."""
    visited = set[int]()  # an error that is raised again during the handling of another is a cause of its own cause
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
