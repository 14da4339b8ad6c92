"""`CheckpointStorage`: whole objects by name under one location, the same on a disk and in an object store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kstreams.runtime.spark.storage.location import below, for_spark

Content: TypeAlias = bytes | bytearray


class CheckpointStorage(ABC):
    """The objects of a checkpoint, which driver and executors share.

    Readers see an object either whole or not at all. Objects are never renamed, so an object store suffices.

    Parameters
    ----------
    location : str
        An absolute path or a URI.
    conf : mapping of str to str
        The settings of Spark, which supply credentials and endpoint.
    """

    def __init__(self, location: str, conf: Mapping[str, str]) -> None:
        self.location = location
        self._conf = conf

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the content of an object. Raises FileNotFoundError if it is missing, StateError if reading fails."""

    @abstractmethod
    def write(self, name: str, content: Content) -> None:
        """Write an object, and replace an existing one."""

    @abstractmethod
    def publish(self, name: str, content: bytes) -> bytes:
        """Write an object unless it exists, and return the content of the stored object.

        If several processes publish an object at once, one of them writes it, and all return its content.
        """

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes of the objects directly in a folder, by name; empty if there is no such folder."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects directly in a folder."""
        return list(self.sizes(folder))

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. Missing objects are not an error."""

    @abstractmethod
    def clear(self) -> None:
        """Delete everything under the location."""

    def location_of(self, name: str) -> str:
        """Return the path or URI of an object."""
        return below(self.location, name)

    def for_spark(self, name: str) -> str:
        """Return a folder under the location in the form of Spark's file systems."""
        return for_spark(self.location_of(name), self._conf)
