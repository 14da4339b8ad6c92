"""`SinkProgram`: the program of one sink, which the engine executes with its own functions for reading and writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pyarrow as pa

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.codecs import Codecs
from kstreams.runtime.spark.code.functions_of_programs import SOURCES
from kstreams.runtime.spark.code.layout import all_rows, streamed_sources
from kstreams.runtime.spark.code.program import IMPORTS, Definitions, body_of
from kstreams.runtime.spark.code.sinks import Sink, dead_letters_of, delay_of_sink, sink_of, topics_of
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.user_functions import UserFunctions
from kstreams.runtime.spark.code.writing import CodeWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Functions: TypeAlias = "Mapping[str, Callable[..., DataFrame | None]]"
"""Functions that a program calls, by their names in its text."""

RowFilter: TypeAlias = "Callable[[DataFrame], DataFrame]"
"""A function that leaves out rows."""


class SinkProgram(NamedTuple):
    """The program of one sink.

    Parameters
    ----------
    sink : Sink
    definitions : Definitions
    """

    sink: Sink
    definitions: Definitions

    @classmethod
    def of(
        cls, node: g.To, typed: TypedGraph, partitions: Callable[[str], int | None], *, skips_unreadable: bool
    ) -> SinkProgram:
        """Return the program of a node.

        Parameters
        ----------
        partitions : callable
            Returns the number of partitions of a topic.
        skips_unreadable : bool
            True if records that cannot be decoded are left out; else they end the query.

        Raises
        ------
        UnsayableNode
            If the node, or one before it, has no text.
        """
        definitions = Definitions(Codecs(), UserFunctions())
        build = CodeWriter(
            typed,
            definitions.codecs,
            partitions,
            delay_of_sink(node, typed),
            skips_unreadable=skips_unreadable,
            functions=definitions.functions,
        )
        return cls(sink_of(node, build, str(node.topic)), definitions)

    @classmethod
    def of_dead_letters(cls, source: Node, typed: TypedGraph, topic: str) -> SinkProgram:
        """Return the program that writes the records of a source that cannot be decoded to a topic."""
        definitions = Definitions(Codecs(), UserFunctions())
        build = CodeWriter(typed, definitions.codecs, lambda topic: None, None, skips_unreadable=True)
        return cls(dead_letters_of(source, build, topic), definitions)

    @property
    def streamed_sources(self) -> list[Node]:
        """The sources that it reads as streams, not as tables."""
        return streamed_sources([self.sink])

    @property
    def streamed_topics(self) -> list[str]:
        """The topics that it reads as streams, not as tables, by their names in the topology."""
        return sorted({topic for source in self.streamed_sources for topic in topics_of(source)})

    def share_of(self, max_records: int) -> int:
        """Return the maximum number of records of a batch that each source of topics may read."""
        return max(1, max_records // max(1, len(self.streamed_sources)))

    @property
    def topics_by_partition(self) -> list[str]:
        """The topics of which each partition is a source of its own; one that is read in two places is there twice."""
        sources = (rows for rows in all_rows([self.sink]) if rows.start.startswith(_BY_PARTITION))
        return [topic for rows in sources for topic in topics_of(rows.node)]

    def execute(self, session: SparkSession, readers: Functions, write: Callable[[DataFrame, str], None]) -> None:
        """Execute the text. It calls `readers` for its input, and `write` with the rows of the sink and their mode."""
        from pyspark.sql import Column, DataFrame
        from pyspark.sql import functions as F

        names = {
            "spark": session,
            "F": F,
            "json": json,
            "pa": pa,
            "Callable": Callable,
            "Sequence": Sequence,
            "Column": Column,
            "DataFrame": DataFrame,
            **readers,
            "write": lambda records, topic, mode, name=None: write(records, mode),
        }
        body = body_of([self.sink], self.definitions)
        helpers = [SOURCES[name] for name in body.helpers if name not in names]
        text = "\n\n".join([*IMPORTS.values(), *helpers, body.types, body.functions, body.statements])
        exec(compile(text, f"<program of {self.sink.topic}>", "exec"), names)


_BY_PARTITION = "read_by_partition("
