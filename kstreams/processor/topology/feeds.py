"""`Feed`: a DataFrame whose rows become the records of an internal topic, on an engine with DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.errors import UnsupportedError
from kstreams.kernel.source_line import operator_at
from kstreams.serdes import Serde

PARTITIONS = 4
"""The default number of partitions of a topic that is filled from a DataFrame."""


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """A DataFrame as the source of a topic.

    Parameters
    ----------
    name : str
        The name of the source that reads the topic.
    declared_at : str
    topic : str
        The name of the topic without the `<application.id>-`.
    frame : DataFrame, or callable
        The DataFrame, static or streaming; or `session -> DataFrame`.
    row : type
        The type of the records' values.
    key : str or None
        The column with the keys.
    timestamp : str or None
        The column with event times.
    serdes : pair of Serde
        The serdes of keys and values.
    partitions : int or None
        The number of partitions of the topic; None for that of the topics it is joined with.
    """

    name: str
    declared_at: str
    topic: str
    frame: Any
    row: Any
    key: str | None
    timestamp: str | None
    serdes: tuple[Serde, Serde]
    partitions: int | None = None

    def __str__(self) -> str:
        return operator_at(self.name, self.declared_at)

    def of(self, session: Any) -> Any:
        """Return the DataFrame in a session."""
        return self.frame(session) if callable(self.frame) else self.frame


def refuse_feeds(feeds: Iterable[Feed], engine: str) -> None:
    """Raise UnsupportedError if there are any feeds."""
    for feed in feeds:
        raise UnsupportedError(
            f"{feed} reads a DataFrame of Spark, which the {engine} engine does not know: run the application with "
            "--engine spark or `kstreams.spark.start`, or write the rows to a topic and read that."
        )


def feed_partitions(
    feeds: Iterable[Feed], names: Mapping[str, str], groups: Iterable[Iterable[str]], existing: Mapping[str, int]
) -> dict[str, int]:
    """Return the numbers of partitions of the topics of feeds, by their real names.

    Parameters
    ----------
    names : mapping of str to str
        The real name of each topic.
    groups : iterable of iterable of str
        Topics that need the same number, by their real names.
    existing : mapping of str to int
        The partition counts of topics that exist or whose count is fixed.

    Examples
    --------
    >>> serde = Serde()
    >>> feeds = [Feed("a", "", "a-feed", None, dict, None, None, (serde, serde))]
    >>> feed_partitions(feeds, {"a-feed": "app-a-feed"}, [["app-a-feed", "orders"]], {"orders": 3})
    {'app-a-feed': 3}
    """
    counts: dict[str, int] = {}
    together = [frozenset(group) for group in groups]
    for feed in feeds:
        real = names[feed.topic]
        mates = [
            existing[topic] for group in together if real in group for topic in group - {real} if topic in existing
        ]
        counts[real] = existing.get(real) or feed.partitions or max(mates, default=PARTITIONS)
    return counts
