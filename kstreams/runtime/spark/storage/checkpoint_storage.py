"""`CheckpointStorage`: whole objects by name under one location, the same on a disk and in an object store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kstreams.runtime.spark.storage.location import below, for_spark

Content: TypeAlias = bytes | bytearray


class CheckpointStorage(ABC):
    """What driver and executors keep in a checkpoint.

    An object is there whole or not at all. Nothing is renamed, so that object stores serve as well as disks.

    Parameters
    ----------
    location : str
        An absolute path or a URI.
    conf : mapping of str to str
        Settings of Spark: the same credentials and endpoint serve here.
    """

    def __init__(self, location: str, conf: Mapping[str, str]) -> None:
        self.location = location
        self._conf = conf

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The content of an object; FileNotFoundError when there is none, StateError when it cannot be read."""

    @abstractmethod
    def write(self, name: str, content: Content) -> None:
        """Put an object in the place of what is there."""

    @abstractmethod
    def publish(self, name: str, content: bytes) -> bytes:
        """Put an object if there is none of this name; the content of the one that is there now.

        Of several writers exactly one has its way, and all get its content.
        """

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """The bytes of the objects directly in a folder, by name without it; empty when there is no such folder."""

    def names(self, folder: str) -> list[str]:
        """The names of these objects."""
        return list(self.sizes(folder))

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; those that are gone already are no error."""

    @abstractmethod
    def clear(self) -> None:
        """Delete everything under the location."""

    def place(self, name: str) -> str:
        """Where an object lies, for messages."""
        return below(self.location, name)

    def for_spark(self, name: str) -> str:
        """A folder under the location as Spark's file systems call it."""
        return for_spark(self.place(name), self._conf)
