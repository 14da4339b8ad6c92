"""Errors of values, schemas and classes that do not fit each other; they know the field that they are about."""

from __future__ import annotations

import struct
from typing import Final

import msgspec


class FieldError(ValueError):
    """A value that a schema, or a class, has no place for.

    Parameters
    ----------
    reason : str
        In words.
    path : str
        The field, with those that it lies in; empty for the value as a whole.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"field {self.path}: {self.reason}" if self.path else self.reason


class UnresolvedError(FieldError):
    """What the writer's schema has, and the reader's schema or class has no place for."""


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
"""What values that do not fit make Python, fastavro, and the classes of users raise."""


def in_field(name: str, error: BaseException) -> FieldError:
    """An error as one of a field: its path begins with the name.

    Examples
    --------
    >>> str(in_field("order", in_field("id", ValueError("too large"))))
    'field order.id: too large'
    """
    if not isinstance(error, FieldError):
        return FieldError(str(error), name)
    error.path = f"{name}.{error.path}" if error.path else name
    return error
