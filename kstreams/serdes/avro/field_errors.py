"""`FieldError`: the error of values, schemas and classes that do not fit each other, with the path of the field."""

from __future__ import annotations

import struct
from typing import Final

import msgspec


class FieldError(ValueError):
    """The error of a value that does not fit a schema or a class.

    Parameters
    ----------
    reason : str
        The reason in words.
    path : str
        The path of the field, such as `order.id`. Empty for the value as a whole.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"field {self.path}: {self.reason}" if self.path else self.reason


class UnresolvedError(FieldError):
    """The error of a part of the writer's schema that does not fit the reader's schema or class."""


FAILURES: Final = (
    ValueError,  # FieldError, UnicodeError, pydantic's ValidationError
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    struct.error,
    msgspec.MsgspecError,
)
"""The exceptions that Python, fastavro and the user's classes raise for values that do not fit."""


def in_field(name: str, error: BaseException) -> FieldError:
    """Convert an error to a `FieldError` whose path begins with the name of a field.

    Examples
    --------
    >>> str(in_field("order", in_field("id", ValueError("too large"))))
    'field order.id: too large'
    """
    if not isinstance(error, FieldError):
        return FieldError(str(error), name)
    error.path = f"{name}.{error.path}" if error.path else name
    return error
