"""`FirstWarning`: a warning about a possible mistake, which is logged only the first time."""

from __future__ import annotations

import logging
from functools import cache

logger = logging.getLogger("kstreams.processor")


class FirstWarning:
    """A warning of one operator. The first call logs it, in whichever task; further calls do nothing.

    Parameters
    ----------
    text : str
        Names the operator, what happened and what to do.
    """

    __slots__ = ("_is_logged", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_logged = False

    def __call__(self) -> None:
        if not self._is_logged:
            self._is_logged = True
            logger.warning("%s", self._text)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _warning_of_process, (self._text,)


@cache
def _warning_of_process(text: str) -> FirstWarning:
    """Return the warning of this process. A Spark worker unpickles operators for each step, and must warn only once."""
    return FirstWarning(text)


def no_warning() -> None:
    """Do nothing: the default of operators without a `FirstWarning`."""
