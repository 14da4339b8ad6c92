"""`SinkProgram`: the program of one sink, which the engine executes with its own functions for reading and writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.codecs import Codecs
from kstreams.runtime.spark.code.functions_of_programs import SOURCES
from kstreams.runtime.spark.code.layout import all_rows
from kstreams.runtime.spark.code.program import body_of
from kstreams.runtime.spark.code.sinks import Sink, delay_of_sink, sink_of
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.writing import CodeWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Functions: TypeAlias = "Mapping[str, Callable[..., DataFrame | None]]"
"""Functions that a program calls, by their names in its text."""


class SinkProgram(NamedTuple):
    """The program of one sink.

    Parameters
    ----------
    sink : Sink
    codecs : Codecs
        The types that its text names.
    """

    sink: Sink
    codecs: Codecs

    @classmethod
    def of(cls, node: g.To, typed: TypedGraph, partitions: Callable[[str], int | None]) -> SinkProgram:
        """Return the program of a node.

        Parameters
        ----------
        partitions : callable
            Returns the number of partitions of a topic.

        Raises
        ------
        UnsayableNode
            If the node, or one before it, has no text.
        """
        codecs = Codecs()
        build = CodeWriter(typed, codecs, partitions, delay_of_sink(node, typed))
        return cls(sink_of(node, build, str(node.topic)), codecs)

    @property
    def streamed_topics(self) -> list[str]:
        """The topics that it reads as streams, not as tables, by their names in the topology."""
        sources = (rows for rows in all_rows([self.sink]) if rows.start.startswith(_STREAMS))
        return sorted({topic for rows in sources for topic in _topics(rows.node)})

    @property
    def topics_by_partition(self) -> list[str]:
        """The topics of which each partition is a source of its own; one that is read in two places is there twice."""
        sources = (rows for rows in all_rows([self.sink]) if rows.start.startswith(_BY_PARTITION))
        return [topic for rows in sources for topic in _topics(rows.node)]

    def execute(self, session: SparkSession, readers: Functions, write: Callable[[DataFrame, str], None]) -> None:
        """Execute the text. It calls `readers` for its input, and `write` with the rows of the sink and their mode."""
        from pyspark.sql import Column, DataFrame
        from pyspark.sql import functions as F

        names = {
            "spark": session,
            "F": F,
            "json": json,
            "reduce": reduce,
            "Callable": Callable,
            "Column": Column,
            "DataFrame": DataFrame,
            **readers,
            "write": lambda records, topic, mode, name=None: write(records, mode),
        }
        body = body_of([self.sink], self.codecs)
        helpers = [SOURCES[name] for name in body.helpers if name not in names]
        text = "\n\n".join([*helpers, body.types, body.statements])
        exec(compile(text, f"<program of {self.sink.topic}>", "exec"), names)


_STREAMS = ("read(", "read_by_partition(")
_BY_PARTITION = "read_by_partition("


def _topics(node: Node) -> tuple[str, ...]:
    """Return the topics that a source reads."""
    return node.topics if isinstance(node, g.StreamSource) else (str(getattr(node, "topic", "")),)
