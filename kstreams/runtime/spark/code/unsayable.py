"""`Unsayable`: the reason why an operator, an expression or a type has no text in PySpark."""

from __future__ import annotations


class Unsayable(Exception):
    """A part of a topology that has no PySpark text with the same results; its text is the reason."""
