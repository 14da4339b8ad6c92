"""The number of arguments of a function, as far as its signature shows it."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def parameters_of(function: Callable[..., object]) -> inspect.Signature:
    """Return the signature of the function itself, not of a function that it wraps.

    Raises
    ------
    TypeError, ValueError
        If the function has no signature.
    """
    return inspect.signature(function, follow_wrapped=False)


def can_be_called(function: Callable[..., object], arguments: int) -> bool:
    """Return whether a function takes this number of positional arguments; True if it has no signature.

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
