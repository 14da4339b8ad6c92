"""`Feed`: a DataFrame whose rows become the records of an internal topic; an engine that knows DataFrames fills it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.errors import UnsupportedError
from kstreams.kernel.source_line import operator_at
from kstreams.serdes import Serde

PARTITIONS = 4
"""Of a topic that is filled from a DataFrame, where nothing says otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """A DataFrame as the source of a topic.

    Parameters
    ----------
    name : str
        Of the source that reads the topic.
    declared_at : str
    topic : str
        Lacks the `<application.id>-` in front.
    frame : DataFrame, or callable
        The DataFrame, static or streaming; or `session -> DataFrame`.
    row : type
        What a row becomes.
    key : str or None
        The column with the keys.
    timestamp : str or None
        The column with event times.
    serdes : pair of Serde
        Of keys and values.
    partitions : int or None
        Of the topic; None: as many as the topics that it is joined with.
    """

    name: str
    declared_at: str
    topic: str
    frame: Any
    row: Any
    key: str | None
    timestamp: str | None
    serdes: tuple[Serde[Any], Serde[Any]]
    partitions: int | None = None

    def __str__(self) -> str:
        return operator_at(self.name, self.declared_at)

    def of(self, session: Any) -> Any:
        """The DataFrame in a session."""
        return self.frame(session) if callable(self.frame) else self.frame


def refuse_feeds(feeds: Iterable[Feed], engine: str) -> None:
    """Raise UnsupportedError when there are any."""
    for feed in feeds:
        raise UnsupportedError(
            f"{feed} reads a DataFrame of Spark, which the {engine} engine does not know: run the application with "
            "--engine spark or `kstreams.spark.start`, or write the rows to a topic and read that."
        )


def feed_partitions(
    feeds: Iterable[Feed], names: Mapping[str, str], groups: Iterable[Iterable[str]], existing: Mapping[str, int]
) -> dict[str, int]:
    """How many partitions the topics of some feeds have, by their real names.

    Parameters
    ----------
    names : mapping of str to str
        Their real names.
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
