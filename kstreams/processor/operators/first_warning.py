"""`FirstWarning`: a warning about what may be a mistake, logged when it first happens and never again."""

from __future__ import annotations

import logging
from functools import cache

logger = logging.getLogger("kstreams.processor")


class FirstWarning:
    """A warning of one operator; calling it logs its text the first time, in whichever task that is.

    Parameters
    ----------
    text : str
        Names the operator, what it saw and what to do.
    """

    __slots__ = ("_is_given", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_given = False

    def __call__(self) -> None:
        if not self._is_given:
            self._is_given = True
            logger.warning("%s", self._text)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _of_process, (self._text,)


@cache
def _of_process(text: str) -> FirstWarning:
    """In a worker of Spark, which gets the operator anew for each of its steps."""
    return FirstWarning(text)


def no_warning() -> None:
    """In the place of a `FirstWarning` where there is nothing to warn of."""
