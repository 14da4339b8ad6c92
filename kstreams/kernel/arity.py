"""How many arguments a function takes, as far as its signature shows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def parameters_of(function: Callable[..., Any]) -> inspect.Signature:
    """What a function takes itself, whatever it wraps; raises TypeError or ValueError where it does not say."""
    return inspect.signature(function, follow_wrapped=False)


def can_be_called(function: Callable[..., Any], arguments: int) -> bool:
    """Whether a function takes so many positional arguments; True where that cannot be known.

    Examples
    --------
    >>> can_be_called(lambda key, value=None: None, 1), can_be_called(lambda: None, 1), can_be_called(print, 7)
    (True, False, True)
    """
    try:
        signature = parameters_of(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return False
    return True
