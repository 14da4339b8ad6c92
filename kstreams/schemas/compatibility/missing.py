"""What is said where the library for a type of schema is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kstreams.errors import RegistryError


@contextmanager
def importing(what: str, extra: str = "registry") -> Iterator[None]:
    """Import a library for these schemas; RegistryError that names the extra, where it is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise RegistryError(
            f"{what} need {error.name}, which is not installed: install it with `pip install 'kstreams-dsl[{extra}]'`"
        ) from None
