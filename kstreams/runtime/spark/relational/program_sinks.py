"""`ProgramSink`: a topic that the query of a PySpark program writes, for a sink of the topology or for dead letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.processor.topology.nodes import SourceNode
from kstreams.runtime.spark.code.execution import SinkProgram
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.path_plan import PathPlan
from kstreams.runtime.spark.settings import SparkSettings


class ProgramSink(NamedTuple):
    """A topic that a query writes.

    Parameters
    ----------
    sub_topology : int
    query : str
        The name of the query. The first one of a sub-topology has its number.
    program : SinkProgram
    source : SourceNode or None
        The source whose dead letters it writes; None for a sink of the topology.
    """

    sub_topology: int
    query: str
    program: SinkProgram
    source: SourceNode | None = None


def program_sinks(plan: PathPlan, program: Program, settings: SparkSettings) -> Iterator[ProgramSink]:
    """Yield the topics that queries write. With a topic of dead letters, each source has a query for its own."""
    sources_with_letters = set[str]()
    for number, sinks in sorted(plan.sinks.items()):
        programs = [_program_of(node, plan, program, settings) for node in sinks]
        written: list[tuple[SinkProgram, SourceNode | None]] = [(of_sink, None) for of_sink in programs]
        if (topic := settings.dead_letter_topic) is not None:
            sources = {source.name: source for of_sink in programs for source in of_sink.streamed_sources}
            new_names = [name for name in sources if name not in sources_with_letters]
            sources_with_letters.update(new_names)
            written += [
                (SinkProgram.of_dead_letters(sources[name], plan.typed, topic), _source_node(sources[name], program))
                for name in new_names
            ]
        for position, (of_sink, source_node) in enumerate(written):
            query = f"{number}-{position}" if position else f"{number}"
            yield ProgramSink(number, query, of_sink, source_node)


def _program_of(node: g.To, plan: PathPlan, program: Program, settings: SparkSettings) -> SinkProgram:
    return SinkProgram.of(
        node,
        plan.typed,
        lambda topic: program.partitions.get(program.feeds.get(topic, topic)),
        skips_unreadable=settings.path.skips_unreadable,
    )


def _source_node(source: Node, program: Program) -> SourceNode:
    nodes = (node for sub in program.sub_topologies for node in sub.sources)
    return next(node for node in nodes if node.name == source.name)
