"""`SourceConnector` and `SinkConnector`: a source or sink with its name, its topic and its serdes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kstreams.connectors.api import Sink, Source
from kstreams.kernel.retry import Retry
from kstreams.serdes import Serde

_EXACTLY_ONCE = "exactly once"


@dataclass(frozen=True, slots=True)
class ConnectorTopic:
    """The topic of a connector, and the serdes of its records.

    Parameters
    ----------
    name : str
        The real name of the topic.
    key, value : Serde
    is_internal : bool
        True if no one else reads the topic, so that records are deleted when the connector has written them.
    """

    name: str
    key: Serde
    value: Serde
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class Connector:
    """A source or sink in its group.

    Parameters
    ----------
    group : str
        The application, or the group of workers that share connectors.
    name : str
        The name of the connector in its group.
    topic : ConnectorTopic
    """

    group: str
    name: str
    topic: ConnectorTopic

    @property
    def id(self) -> str:
        """The name of the connector among all groups: the id of its consumer group, and the prefix of its producers."""
        return f"{self.group}-{self.name}"


@dataclass(frozen=True, slots=True)
class SourceConnector(Connector):
    """A source that fills a topic."""

    source: Source
    kind: ClassVar[str] = "source"

    @property
    def type(self) -> str:
        """The source as a text, with credentials masked."""
        return _described(self.source)

    @property
    def guarantee(self) -> str:
        """The guarantee of the source, if the other system can be read again from a position."""
        return _EXACTLY_ONCE

    @property
    def task_topic(self) -> str:
        """The topic whose partitions are the tasks."""
        return self.positions_topic

    def transactional_id(self, task: int) -> str:
        """Return the transactional id of a task."""
        return f"{self.id}-{task}"

    @property
    def positions_topic(self) -> str:
        """The compacted topic with the position of each split, with a partition per task."""
        return f"{self.id}-positions"


@dataclass(frozen=True, slots=True)
class SinkConnector(Connector):
    """A sink that takes the records of a topic."""

    sink: Sink
    park: str = ""
    """The topic for rows that the target refuses. Empty if they are dead letters."""

    retry: Retry | None = None
    """When rows that the target refuses are written again. None for never."""

    kind: ClassVar[str] = "sink"

    @property
    def type(self) -> str:
        """The sink as a text, with credentials masked."""
        return _described(self.sink)

    @property
    def guarantee(self) -> str:
        """The guarantee of the sink."""
        return "at least once" if self.sink.at_least_once else _EXACTLY_ONCE

    @property
    def task_topic(self) -> str:
        """The topic whose partitions are the tasks."""
        return self.topic.name

    @property
    def waiting_topic(self) -> str:
        """The topic of rows that wait for their next attempt, and of those behind them, if there is `retry`."""
        return f"{self.id}-waiting"

    @property
    def waiting_group(self) -> str:
        """The consumer group that knows the offset in `waiting_topic` for a sink that is at least once."""
        return self.waiting_topic


def _described(system: Source | Sink) -> str:
    """Return the `repr` of a source or sink, or its class if it has no `repr` of its own."""
    return type(system).__name__ if type(system).__repr__ is object.__repr__ else repr(system)
