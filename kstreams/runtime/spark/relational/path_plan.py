"""Which path each sub-topology takes on Spark, and why: the data behind `kstreams explain --engine spark`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import NamedTuple

from kstreams.config import Config
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.processor.api.error_handlers import KINDS
from kstreams.processor.topology.processing_order import in_cycles
from kstreams.processor.topology.topology import SubTopology, Topology
from kstreams.runtime.spark.relational.support import difference_of, unsupported_reason
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.windowed_query import unsupported_in_windowed_query
from kstreams.runtime.spark.settings import PathChoice
from kstreams.timestamps import FailOnInvalidTimestamp, extractor_of

TASK, RELATIONAL = "task", "relational"
_FEEDS_ITSELF = "its sub-topology feeds itself, by way of others or not"
_WRITES_NOTHING = "its sub-topology writes nothing, and Spark runs nothing for that"
_FASTER = "faster as tasks: they read, process and write in one go, and Spark would keep no state here"


class PathDecision(NamedTuple):
    """One operator: the path it takes, and why."""

    operator: str
    sub_topology: int
    path: str
    why: str
    declared_at: str | None


@dataclass(frozen=True)
class PathPlan:
    """The decisions of a topology.

    Parameters
    ----------
    decisions : tuple of PathDecision
        In order of sub-topologies, operators in order of declaration.
    nodes : mapping of int to tuple of Node
        The logical operators of every sub-topology on the relational path.
    streaming : frozenset of int
        Those among them for which Spark keeps state: each is a query of its own.
    facts : TypedGraph or None
        The logical graph; None for a topology put together by hand.
    """

    decisions: tuple[PathDecision, ...]
    nodes: Mapping[int, tuple[Node, ...]]
    streaming: frozenset[int]
    facts: TypedGraph | None


def plan_of(topology: Topology, choice: PathChoice = "auto", only_tasks: str | None = None) -> PathPlan:
    """Decide: a sub-topology takes the relational path when each of its operators can, exactly, and it pays.

    `only_tasks` is the reason why none may, as `needs_tasks` gives it.
    """
    graph: LogicalGraph | None = topology.graph
    if graph is None:
        by_hand = [_by_hand(sub) for sub in topology.sub_topologies]
        return PathPlan(tuple(decision for decisions in by_hand for decision in decisions), {}, frozenset(), None)
    facts = TypedGraph(graph)
    decisions: list[PathDecision] = []
    relational: dict[int, tuple[Node, ...]] = {}
    circles = in_cycles(_upstream(topology))
    for sub in topology.sub_topologies:
        nodes = logical_nodes(sub, topology, graph)
        reasons = _reasons(sub, nodes, facts, choice, only_tasks)
        whole = _FEEDS_ITSELF if sub.id in circles else _why_tasks(sub, choice)
        if whole is not None:
            reasons = {name: reason or whole for name, reason in reasons.items()}
        if not any(reasons.values()):
            relational[sub.id] = nodes
        decisions += _decisions(sub, nodes, reasons)
    streaming = frozenset(sub.id for sub in topology.sub_topologies if sub.id in relational and sub.stores)
    return PathPlan(tuple(decisions), relational, streaming, facts)


def _why_tasks(sub: SubTopology, choice: PathChoice) -> str | None:
    """Why a sub-topology is better off as tasks, whatever its operators can."""
    if not sub.sinks:
        return _WRITES_NOTHING
    return _FASTER if choice == "auto" and not sub.stores else None


def needs_tasks(config: Config) -> str | None:
    """Why an application runs as tasks whatever its operators could: Spark asks no handler and no extractor."""
    names = [f"{kind}.exception.handler" for kind in KINDS]
    asked = [name for name in names if config[name] not in ("fail", "retry")]
    if config["errors.deadletterqueue.topic.name"] is not None:
        asked.append("errors.deadletterqueue.topic.name")
    if type(extractor_of(config["default.timestamp.extractor"])) not in (NoneType, FailOnInvalidTimestamp):
        asked.append("default.timestamp.extractor")
    if config["max.timestamp.ahead"] >= 0:
        asked.append("max.timestamp.ahead")
    return f"{asked[0]} is set: only tasks can follow it" if asked else None


def logical_nodes(sub: SubTopology, topology: Topology, graph: LogicalGraph) -> tuple[Node, ...]:
    """The logical operators of a sub-topology, in order of declaration; repartitions belong to both sides."""
    names = {topology.origin.get(node.name, node.name) for node in sub.nodes}
    return tuple(node for node in graph if node.name in names)


def _upstream(topology: Topology) -> dict[int, set[int]]:
    written = {sub.id: {sink.topic for sink in sub.sinks} for sub in topology.sub_topologies}
    read = {sub.id: {topic for source in sub.sources for topic in source.topics} for sub in topology.sub_topologies}
    return {
        sub: {writer for writer in written if not topics.isdisjoint(written[writer])} for sub, topics in read.items()
    }


def _reasons(
    sub: SubTopology, nodes: tuple[Node, ...], facts: TypedGraph, choice: PathChoice, only_tasks: str | None
) -> dict[str, str | None]:
    if only_tasks or choice == "task":
        return {node.name: only_tasks or "spark.kstreams.path is task" for node in nodes}
    reasons = {node.name: unsupported_reason(node, facts) for node in nodes}
    for node in nodes:
        if reasons[node.name] is None:
            reasons[node.name] = _second_reason(sub, node, nodes, facts, choice)
    return reasons


def _second_reason(
    sub: SubTopology, node: Node, nodes: tuple[Node, ...], facts: TypedGraph, choice: PathChoice
) -> str | None:
    difference = difference_of(node)
    if difference and choice == "auto":
        return f"only with a difference on the relational path: {difference}"
    return unsupported_in_windowed_query(node, nodes, facts) if sub.stores else None


def _decisions(sub: SubTopology, nodes: tuple[Node, ...], reasons: Mapping[str, str | None]) -> list[PathDecision]:
    path = TASK if any(reasons.values()) else RELATIONAL
    blocking = next((name for name, reason in reasons.items() if reason), None)
    found = []
    for node in nodes:
        why = reasons[node.name] or (f"with {blocking}, in one sub-topology" if blocking else _supported(node))
        found.append(PathDecision(node.name, sub.id, path, why, node.declared_at))
    return found


def _supported(node: Node) -> str:
    difference = difference_of(node)
    return f"Spark's own form; {difference}" if difference else "exact: columns and UDFs"


def _by_hand(sub: SubTopology) -> list[PathDecision]:
    why = "the topology was put together by hand"
    return [PathDecision(node.name, sub.id, TASK, why, node.declared_at) for node in sub.nodes]
