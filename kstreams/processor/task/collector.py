"""`Collector`: where a task hands its encoded output to: a producer, the test driver, or Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from kstreams.errors import LogError

BY_KEY = -1
"""In `partitions` of `Collector.send`: leave the choice to the key."""


class Collector(Protocol):
    """Takes what the sinks of a task write."""

    def send(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None,
        partitions: np.ndarray[Any, Any] | None,
        stream_times: pa.Array | None = None,
    ) -> None:
        """Take encoded rows of one topic, in order.

        Parameters
        ----------
        topic : str
            The real name, with the application's id where the topic is internal.
        keys, values : pyarrow binary array, length n
        timestamps : pyarrow int64 array, length n
            Milliseconds since the epoch.
        headers : pyarrow list<struct<name, value>> array, length n, or None
        partitions : numpy int64 array, shape (n,), or None
            None: all by murmur2 of the key; in an array, `BY_KEY` (-1) says so for one row.
        stream_times : pyarrow int64 array, length n, or None
            Where the topic `merges`: by what the rows are put in order among those of other tasks (`written_times.py`).
        """
        ...

    def merges(self, topic: str) -> bool:
        """Whether what several tasks write to a topic is put in order of their stream times."""
        ...

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; asked only when the task itself must choose one."""
        ...

    def refused(
        self, topic: str, keys: pa.Array, values: pa.Array, timestamps: pa.Array, headers: pa.Array | None
    ) -> Mapping[int, LogError]:
        """The rows that the topic would never take, and why; asked only where a handler decides about them."""
        ...
