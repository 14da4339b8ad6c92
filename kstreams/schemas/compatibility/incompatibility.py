"""`Incompatibility`: one reason why a reader's schema cannot read records of a writer's schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kstreams.errors import RegistryError


@contextmanager
def importing(description: str, extra: str = "registry") -> Iterator[None]:
    """Convert the error of a failed import to a RegistryError that names the extra to install.

    Parameters
    ----------
    description : str
        The subject of the message, in the plural: "Avro schemas".
    extra : str
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise RegistryError(
            f"{description} need {error.name}, which is not installed: "
            f"install it with `pip install 'kstreams-dsl[{extra}]'`"
        ) from None


class Incompatibility(NamedTuple):
    """A difference between two schemas that breaks readers.

    Parameters
    ----------
    path : str
        The names from the outermost type to the difference, joined by dots. `[]` means the items or map values.
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
