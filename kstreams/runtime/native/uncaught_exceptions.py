"""What happens when an error ends a thread: the response of the user's handler, and the request to all members."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from kstreams.clock import Clock
from kstreams.errors import KStreamsError
from kstreams.log.api import Admin

logger = logging.getLogger(__name__)

_LOOK_EVERY_MS = 500


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


class ShutdownSignal:
    """The request to all members of an application to stop, if there was one since this member started.

    Parameters
    ----------
    admin : Admin
    application_id : str
    clock : Clock
    """

    def __init__(self, admin: Admin, application_id: str, clock: Clock) -> None:
        self._admin, self._application_id, self._clock = admin, application_id, clock
        self._before = admin.shutdowns(application_id)
        self._looked_ms = clock.now_ms()
        self._mutex = threading.Lock()

    def call(self) -> None:
        """Ask all members to stop."""
        self._admin.ask_to_shut_down(self._application_id)

    def check(self) -> None:
        """Raise ApplicationShutdownError when a member has asked; reads the log at intervals only."""
        with self._mutex:
            if self._clock.now_ms() - self._looked_ms < _LOOK_EVERY_MS:
                return
            self._looked_ms = self._clock.now_ms()
        if self._admin.shutdowns(self._application_id) > self._before:
            raise ApplicationShutdownError(
                f"a member of {self._application_id} asked the whole application to stop after an error there"
            )


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
    seen = set[int]()  # an error that is raised again while a later one is handled is a cause of its own cause
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
