"""`Incompatibility`: one reason why a reader's schema cannot read what a writer's schema wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kstreams.errors import RegistryError


@contextmanager
def importing(description: str, extra: str = "registry") -> Iterator[None]:
    """Import a library for these schemas; RegistryError that names the extra, where it is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise RegistryError(
            f"{description} need {error.name}, which is not installed: "
            f"install it with `pip install 'kstreams-dsl[{extra}]'`"
        ) from None


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
