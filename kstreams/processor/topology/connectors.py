"""`DeclaredSource` and `DeclaredSink`: the connectors of a topology. Each fills or reads a topic beside the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kstreams.connectors.api import Sink, Source
from kstreams.kernel.retry import Retry
from kstreams.kernel.source_line import operator_at


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredSource:
    """A source that fills the topic of a source node.

    Parameters
    ----------
    name : str
        The name of the source node.
    declared_at : str
    topic : str
        The topic: the user's, or an internal one without the `<application.id>-`.
    source : Source
    is_table : bool
        True if the last record of each key counts, so that the topic is compacted.
    """

    name: str
    declared_at: str
    topic: str
    source: Source
    is_table: bool = False

    @property
    def is_internal(self) -> bool:
        """True if only this application reads the topic."""
        return not self.source.topic

    def __str__(self) -> str:
        return operator_at(self.name, self.declared_at)


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredSink:
    """A sink that reads the internal topic of a sink node.

    Parameters
    ----------
    name : str
        The name of the sink node.
    declared_at : str
    topic : str
        The topic, without the `<application.id>-`.
    sink : Sink
    park : str
        The topic for rows that the target refuses. Empty if they are dead letters.
    retry : Retry or None
        When rows that the target refuses are written again. None for never.
    """

    name: str
    declared_at: str
    topic: str
    sink: Sink
    park: str = ""
    retry: Retry | None = None

    @property
    def is_internal(self) -> bool:
        """True: only the sink reads the topic."""
        return True

    def __str__(self) -> str:
        return operator_at(self.name, self.declared_at)


Connector: TypeAlias = DeclaredSource | DeclaredSink
