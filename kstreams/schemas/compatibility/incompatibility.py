"""`Incompatibility`: one reason why a reader's schema cannot read what a writer's schema wrote."""

from __future__ import annotations

from typing import NamedTuple


class Incompatibility(NamedTuple):
    """Where two schemas differ, and why that breaks readers.

    Parameters
    ----------
    path : str
        The names from the outermost type to the place, with dots; `[]` stands for items of arrays and values of maps.
    reason : str

    Examples
    --------
    >>> print(Incompatibility("Order.price", "was a string and is read as an int"))
    Order.price: was a string and is read as an int
    """

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"
