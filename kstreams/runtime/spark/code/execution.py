"""`SinkProgram`: the program of one sink, which the engine executes with its own functions for reading and writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.codecs import Codecs
from kstreams.runtime.spark.code.functions_of_programs import SOURCES
from kstreams.runtime.spark.code.layout import all_rows
from kstreams.runtime.spark.code.program import RULES, body_of
from kstreams.runtime.spark.code.sinks import Sink, delay_of_sink, sink_of
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.writing import CodeWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Inputs(Protocol):
    """The functions by which a program reads topics."""

    def read(self, topics: str) -> DataFrame:
        """Read topics, whose names are separated by commas."""
        ...

    def read_by_partition(self, topics: Mapping[str, int], delay: str) -> DataFrame:
        """Read topics with a watermark for each partition."""
        ...

    def read_table(self, topic: str) -> DataFrame:
        """Read the last value of each key of a topic, anew in every batch."""
        ...


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
        build = CodeWriter(typed, RULES, codecs, partitions, delay_of_sink(node, typed))
        return cls(sink_of(node, build, str(node.topic)), codecs)

    @property
    def streamed_topics(self) -> list[str]:
        """The topics that it reads as streams, not as tables, by their names in the topology."""
        sources = (rows for rows in all_rows([self.sink]) if not rows.parents and not rows.start.startswith(_TABLE))
        return sorted({topic for rows in sources for topic in _topics(rows.node)})

    def execute(self, session: SparkSession, inputs: Inputs, write: Callable[[DataFrame, str], None]) -> None:
        """Execute the text. It calls `write` with the records of the sink and the output mode."""
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
            "read": inputs.read,
            "read_by_partition": inputs.read_by_partition,
            "read_table": inputs.read_table,
            "write": lambda records, topic, mode, name=None: write(records, mode),
        }
        body = body_of([self.sink], self.codecs)
        helpers = [SOURCES[name] for name in body.helpers if name not in names]
        text = "\n\n".join([*helpers, body.types, body.statements])
        exec(compile(text, f"<program of {self.sink.topic}>", "exec"), names)


_TABLE = "read_table("


def _topics(node: Node) -> tuple[str, ...]:
    """Return the topics that a source reads."""
    return node.topics if isinstance(node, g.StreamSource) else (str(getattr(node, "topic", "")),)
