"""`PathPlan`: the path of each sub-topology on Spark and the reason, for `kstreams explain --engine spark`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.kernel.source_line import brief_operator
from kstreams.processor.topology.barriers import in_cycles
from kstreams.processor.topology.topology import SubTopology, Topology
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import emits_updates
from kstreams.runtime.spark.relational.path_choices import Choice, PathChoices, Reasons
from kstreams.runtime.spark.relational.programs import calls_python, described, refusals_of, sinks_of, unaccepted
from kstreams.runtime.spark.relational.queries import (
    OTHERS_TOO,
    Exchanges,
    Queries,
    exchanges_of,
    possible_queries,
    settled,
)
from kstreams.runtime.spark.settings import AUTO, PATH, PathSettings

TASK = "task"
RELATIONAL = "relational"
MEASURED = "measured"
DECLARED = "declared"
FOLLOWED_BY_TASKS = "{} is set: only tasks can follow it"
_FEEDS_ITSELF = "its sub-topology feeds itself, by way of others or not"
_WRITES_NOTHING = "its sub-topology writes nothing, and Spark runs nothing for that"
_FASTER = "faster as tasks: they read, process and write in one go, and Spark would keep no state here"

_CALLS_PYTHON = "faster as tasks: Spark would pass each row to its Python function and back"


class PathDecision(NamedTuple):
    """The path of one operator, and the reason.

    Parameters
    ----------
    operator : str
    sub_topology : int
    path : {"task", "relational"}
    why : str
        The reason.
    decided_by : str
        The setting that chooses the path, or "measured" (the path is the faster one), or "declared" (operators declare
        whether they can take the relational path).
    declared_at : str or None
        The line of the program that declares the operator.
    """

    operator: str
    sub_topology: int
    path: str
    why: str
    decided_by: str
    declared_at: str | None


@dataclass(frozen=True)
class PathPlan:
    """The decisions of a topology.

    Parameters
    ----------
    decisions : tuple of PathDecision
        In order of sub-topologies, operators in order of declaration.
    sinks : mapping of int to tuple of To
        By the number of each query: the operators that write topics, each by a program of its own.
    queries : mapping of int to frozenset of int
        The sub-topologies that each query computes. Its number is that of the sub-topology that writes to topics.
    typed : TypedGraph
        The logical graph, which is empty for a topology put together by hand.
    """

    decisions: tuple[PathDecision, ...]
    sinks: Mapping[int, tuple[g.To, ...]]
    queries: Queries
    typed: TypedGraph

    @property
    def in_queries(self) -> frozenset[int]:
        """All sub-topologies that the queries compute."""
        return frozenset().union(*self.queries.values())

    def operators(self, number: int) -> str:
        """Return the operators of a sub-topology with the lines that declare them, as titles show them."""
        decisions = (decision for decision in self.decisions if decision.sub_topology == number)
        return _titles((decision.operator, decision.declared_at) for decision in decisions)

    def operators_of_query(self, sink: Node) -> str:
        """Return the operators of the query that writes a topic, as titles show them."""
        upstream = {node.name for node in self.typed.graph.upstream(sink)}
        return _titles((node.name, node.declared_at) for node in self.typed.graph if node.name in upstream)

    def described(self) -> dict[int, str]:
        """Return the description of each query, by its number."""
        return {
            number: f"{_results(sinks, self.typed)} over {sorted(self.queries[number])}"
            for number, sinks in self.sinks.items()
        }


def _titles(names_and_lines: Iterable[tuple[str, str | None]]) -> str:
    titles = (brief_operator(name, line) for name, line in names_and_lines)
    return ", ".join(dict.fromkeys(titles))


def _results(sinks: Sequence[Node], typed: TypedGraph) -> str:
    before = {node.name: node for sink in sinks for node in typed.graph.upstream(sink)}.values()
    return "updates" if any(emits_updates(node, typed) for node in before) else "final results"


def plan_of(topology: Topology, settings: PathSettings = AUTO, only_tasks: str | None = None) -> PathPlan:
    """Choose the paths: what a program of PySpark computes runs as a query, if the user accepts its differences.

    Parameters
    ----------
    topology : Topology
    settings : PathSettings
    only_tasks : str or None
        The setting that only tasks can follow, as `needs_tasks` returns it.

    Raises
    ------
    ConfigError
        If the settings make an operator relational that cannot be.
    """
    graph: LogicalGraph | None = topology.graph
    if graph is None:
        return _by_hand(topology, settings)
    typed = TypedGraph(graph)
    subs = topology.sub_topologies
    nodes = {sub.id: logical_nodes(sub, topology, graph) for sub in subs}
    operator_names = {number: [node.name for node in of_sub] for number, of_sub in nodes.items()}
    exchanges = exchanges_of(topology)
    before = {sub.id: exchanges.members(sub.id) - {sub.id} for sub in subs if sub.stores}
    choices = PathChoices(settings, operator_names, before)
    cyclic = in_cycles(_upstream(topology))
    reasons: dict[int, Reasons] = {sub.id: dict.fromkeys(operator_names[sub.id]) for sub in subs}
    for sub in subs:
        reasons[sub.id] |= _barred(sub, nodes[sub.id], choices[sub.id], only_tasks, cyclic)
    queries = _Candidates(topology, typed, nodes, exchanges, choices, settings).queries(reasons)
    choices.require_relational(reasons)
    deciders = {sub.id: partial(_decided_by, choices[sub.id], only_tasks) for sub in subs}
    decisions = [
        decision._replace(why=decision.why + _other_queries(sub.id, queries))
        for sub in subs
        for decision in _decisions(sub, nodes[sub.id], reasons[sub.id], deciders[sub.id], typed)
    ]
    return PathPlan(tuple(decisions), {number: sinks_of(nodes[number]) for number in queries}, queries, typed)


class _Candidates(NamedTuple):
    """What decides which sub-topologies become queries.

    Parameters
    ----------
    nodes : mapping of int to tuple of Node
        The operators of each sub-topology.
    settings : PathSettings
    """

    topology: Topology
    typed: TypedGraph
    nodes: Mapping[int, tuple[Node, ...]]
    exchanges: Exchanges
    choices: PathChoices
    settings: PathSettings

    def queries(self, reasons: Mapping[int, Reasons]) -> Queries:
        """Return the queries, and add the reasons of all sub-topologies outside of them."""
        able = {number for number, of_sub in reasons.items() if not any(of_sub.values())}
        possible = possible_queries(self.exchanges, self.nodes.keys())
        for members in possible.values():
            self._refuse(members, reasons)
        free = {number for number in able if not any(reasons[number].values())}
        chosen = settled(possible_queries(self.exchanges, free), self.exchanges)
        for number in free.difference(*chosen.values()):
            repartitions = [node.name for node in self.nodes[number] if isinstance(node, g.Repartition)]
            reasons[number].update(dict.fromkeys(repartitions or reasons[number], OTHERS_TOO))
        return chosen

    def _refuse(self, members: Collection[int], reasons: Mapping[int, Reasons]) -> None:
        """Add the reasons that speak against a query: what has no text, then differences, then what was measured."""
        query = _in_order(members, self.nodes, self.typed.graph)
        refusals: Mapping[str, str] = refusals_of(
            query, self.topology, self.typed, skips_unreadable=self.settings.skips_unreadable
        )
        is_asked = any(self.choices[member].path == RELATIONAL for member in members)
        has_state = any(sub.stores for sub in self.topology.sub_topologies if sub.id in members)
        if not refusals and not is_asked:
            refusals = _faster_as_tasks(query, has_state=has_state)
        for member in members:
            is_settled = self.choices[member].path == RELATIONAL or any(reasons[member].values()) or refusals
            differences = {} if is_settled else unaccepted(self.nodes[member], self.settings.accepted, self.typed)
            for name, reason in {**differences, **refusals}.items():
                if name in reasons[member] and reasons[member][name] is None:
                    reasons[member][name] = reason


def _faster_as_tasks(query: Sequence[Node], *, has_state: bool) -> dict[str, str]:
    """Return the reasons for which tasks are faster, by operator; empty if they are not."""
    if not has_state:
        return {node.name: _FASTER for node in query}
    return {node.name: _CALLS_PYTHON for node in query if calls_python(node)}


def _in_order(members: Collection[int], nodes: Mapping[int, tuple[Node, ...]], graph: LogicalGraph) -> tuple[Node, ...]:
    """Return the operators of some sub-topologies, parents first."""
    names = {node.name for member in members for node in nodes[member]}
    return tuple(node for node in graph if node.name in names)


def logical_nodes(sub: SubTopology, topology: Topology, graph: LogicalGraph) -> tuple[Node, ...]:
    """Return the logical operators of a sub-topology in order of declaration.

    A repartition belongs to the sub-topology that writes its topic and to the one that reads it.
    """
    names = {topology.origin.get(node.name, node.name) for node in sub.nodes}
    return tuple(node for node in graph if node.name in names)


def _upstream(topology: Topology) -> dict[int, set[int]]:
    written = {sub.id: {sink.topic for sink in sub.sinks} for sub in topology.sub_topologies}
    read = {sub.id: {topic for source in sub.sources for topic in source.topics} for sub in topology.sub_topologies}
    return {
        sub: {writer for writer in written if not topics.isdisjoint(written[writer])} for sub, topics in read.items()
    }


def _barred(
    sub: SubTopology, nodes: tuple[Node, ...], choice: Choice, only_tasks: str | None, cyclic: Collection[int]
) -> Reasons:
    """Return the reasons why a sub-topology is no query, whatever its operators are."""
    if only_tasks is not None:
        return {node.name: FOLLOWED_BY_TASKS.format(only_tasks) for node in nodes}
    if choice.path == TASK:
        chosen = [node.name for node in nodes if choice.key in (PATH, f"{PATH}.{node.name}")]
        return dict.fromkeys(chosen, f"{choice.key} is task")
    if sub.id in cyclic:
        return {node.name: _FEEDS_ITSELF for node in nodes}
    return {} if sub.sinks else {node.name: _WRITES_NOTHING for node in nodes}


def _decisions(
    sub: SubTopology,
    nodes: tuple[Node, ...],
    reasons: Reasons,
    decided_by: Callable[[str | None], str],
    typed: TypedGraph,
) -> Iterator[PathDecision]:
    blocking = next((name for name, reason in reasons.items() if reason), None)
    path = RELATIONAL if blocking is None else TASK
    for node in nodes:
        reason = reasons[node.name]
        why = reason or (f"with {blocking}, in one sub-topology" if blocking else described(node, typed))
        decider = decided_by(reason or (reasons[blocking] if blocking else None))
        yield PathDecision(node.name, sub.id, path, why, decider, node.declared_at)


def _decided_by(choice: Choice, only_tasks: str | None, reason: str | None) -> str:
    """Return the rule or setting that decides the path of an operator; `reason` says why it runs as a task, if so."""
    if only_tasks is not None:
        return only_tasks
    if reason in (_FASTER, _CALLS_PYTHON):
        return MEASURED
    return choice.key if choice.path == (TASK if reason else RELATIONAL) else DECLARED


def _other_queries(number: int, queries: Queries) -> str:
    """Return the other queries that compute a sub-topology, in words."""
    other_queries = sorted(other for other, members in queries.items() if number in members and other != number)
    return f"; computed in the query of sub-topology {' and '.join(map(str, other_queries))}" if other_queries else ""


def _by_hand(topology: Topology, settings: PathSettings) -> PathPlan:
    why = "the topology was put together by hand"
    reasons: dict[int, Reasons] = {sub.id: {node.name: why for node in sub.nodes} for sub in topology.sub_topologies}
    PathChoices(settings, reasons, {}).require_relational(reasons)
    nodes = [(sub.id, node) for sub in topology.sub_topologies for node in sub.nodes]
    decisions = (
        PathDecision(logical_node.name, sub, TASK, why, DECLARED, logical_node.declared_at)
        for sub, logical_node in nodes
    )
    return PathPlan(tuple(decisions), {}, {}, TypedGraph(LogicalGraph([])))
