"""`Collector`: where a task hands its encoded output to: a producer, the test driver, or Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kstreams.errors import LogError
from kstreams.processor.context.encoded_rows import EncodedRows


class Collector(Protocol):
    """Takes what the sinks of a task write."""

    def send(self, topic: str, rows: EncodedRows) -> None:
        """Take rows of one topic, by its real name: with the application's id where the topic is internal."""
        ...

    def merges(self, topic: str) -> bool:
        """Whether what several tasks write to a topic is put in order of their stream times."""
        ...

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; asked only when the task itself must choose one."""
        ...

    def refused(self, topic: str, rows: EncodedRows) -> Mapping[int, LogError]:
        """The rows that the topic would never take, and why; asked only where a handler decides about them."""
        ...
