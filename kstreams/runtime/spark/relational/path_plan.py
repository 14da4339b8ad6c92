"""`PathPlan`: the path of each sub-topology on Spark and the reason, for `kstreams explain --engine spark`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kstreams.dsl import graph as g
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.operator import operators
from kstreams.processor.topology.barriers import in_cycles
from kstreams.processor.topology.topology import SubTopology, Topology
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.code.windowed_query import emits_updates
from kstreams.runtime.spark.relational import rules  # noqa: F401 (registers the forms of all operators)
from kstreams.runtime.spark.relational.header_reads import unreadable_record
from kstreams.runtime.spark.relational.path_choices import Choice, PathChoices, Reasons
from kstreams.runtime.spark.relational.programs import Programs, described, refusals_of, sinks_of, unaccepted
from kstreams.runtime.spark.relational.queries import (
    OTHERS_TOO,
    Exchanges,
    Queries,
    exchanges_of,
    possible_queries,
    settled,
    through_reason,
)
from kstreams.runtime.spark.relational.states_in_query import unsupported_in_query
from kstreams.runtime.spark.settings import AUTO, PATH, PathChoice, PathSettings
from kstreams.serdes import Serde

Borders = Mapping[tuple[int, str], str]
"""By sub-topology and operator: the remark on the topic that the operator writes or reads."""


def borders(topology: Topology, reasons: Mapping[int, str], relational: Collection[int]) -> Borders:
    """Return remarks on the topics between relational sub-topologies and those in tasks.

    Parameters
    ----------
    reasons : mapping of int to str
        The path of each sub-topology, and the reason.
    relational : collection of int
        The sub-topologies on the relational path.
    """
    borders_of_nodes: dict[tuple[int, str], str] = {}
    for topic, sink, writer, source, reader in _internal_topics(topology):
        if (writer in relational) != (reader in relational):
            borders_of_nodes[writer, sink] = f"{topic} goes to sub-topology {reader}, which {reasons[reader]}"
            borders_of_nodes[reader, source] = f"{topic} comes from sub-topology {writer}, which {reasons[writer]}"
    return borders_of_nodes


def _internal_topics(topology: Topology) -> Iterator[tuple[str, str, int, str, int]]:
    """Yield each topic within the application, and the operators and sub-topologies that write and read it."""
    written = [(sink.topic, sink.name, sub.id) for sub in topology.sub_topologies for sink in sub.sinks]
    for sub in topology.sub_topologies:
        for source in sub.sources:
            for topic, sink, writer in written:
                if topic in source.topics:
                    yield str(topic), _operator(topology, sink), writer, _operator(topology, source.name), sub.id


def _operator(topology: Topology, name: str) -> str:
    return topology.origin.get(name, name)


def unsupported_reason(node: Node, typed: TypedGraph) -> str | None:
    """Return the reason why a node cannot take the relational path; None if it can."""
    form = operators.of(node).spark
    if form.lower is None:
        return form.reason
    if (calls := getattr(node, "calls", None)) is not None:
        return "async functions are called by tasks" if calls.is_async else "failed calls are repeated by tasks"
    if any(isinstance(side.kind, Serde) and side.kind.asks_registry for side in typed.types.get(node.name, ())):
        return "each record names its schema in a registry, which tasks ask: from_avro takes one schema for all"
    reason = unreadable_record(node, typed)
    return reason if reason is not None or form.check is None else form.check(node, typed)


def difference_of(node: Node) -> str | None:
    """Return the difference of a node's final results on the relational path."""
    return operators.of(node).spark.difference


TASK = "task"
RELATIONAL = "relational"
MEASURED = "measured"
DECLARED = "declared"
FOLLOWED_BY_TASKS = "{} is set: only tasks can follow it"
_FEEDS_ITSELF = "its sub-topology feeds itself, by way of others or not"
_WRITES_NOTHING = "its sub-topology writes nothing, and Spark runs nothing for that"
_FASTER = "faster as tasks: they read, process and write in one go, and Spark would keep no state here"


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
    border : str or None
        The remark on a topic between a relational sub-topology and one in tasks.
    declared_at : str or None
        The line of the program that declares the operator.
    """

    operator: str
    sub_topology: int
    path: str
    why: str
    decided_by: str
    border: str | None
    declared_at: str | None


@dataclass(frozen=True)
class PathPlan:
    """The decisions of a topology.

    Parameters
    ----------
    decisions : tuple of PathDecision
        In order of sub-topologies, operators in order of declaration.
    nodes : mapping of int to tuple of Node
        The logical operators of every sub-topology on the relational path. The operators of a query are those of all
        its sub-topologies.
    queries : mapping of int to frozenset of int
        The sub-topologies that are queries of Spark, each with the sub-topologies that it computes.
    programs : mapping of int to tuple of To
        The queries that PySpark programs compute, one for each sink.
    typed : TypedGraph
        The logical graph, which is empty for a topology put together by hand.
    """

    decisions: tuple[PathDecision, ...]
    nodes: Mapping[int, tuple[Node, ...]]
    queries: Queries
    programs: Programs
    typed: TypedGraph

    @property
    def in_queries(self) -> frozenset[int]:
        """All sub-topologies that the queries compute."""
        return frozenset().union(*self.queries.values())

    def emits_updates(self, number: int) -> bool:
        """Return True if a query emits the windows that changed in each step, False if it emits closed windows only."""
        return any(emits_updates(node, self.typed) for node in self.nodes[number])

    def described(self) -> dict[int, str]:
        """Return the description of each query, by its number."""
        kinds = {number: "updates" if self.emits_updates(number) else "final results" for number in self.queries}
        kinds |= {number: f"{kinds[number]} by PySpark" for number in self.programs}
        return {number: f"{kinds[number]} over {sorted(members)}" for number, members in self.queries.items()}

    def members(self, number: int) -> frozenset[int]:
        """Return the sub-topologies that the query of a sub-topology computes."""
        return self.queries.get(number, frozenset({number}))


def plan_of(topology: Topology, settings: PathSettings = AUTO, only_tasks: str | None = None) -> PathPlan:
    """Choose the paths: a sub-topology is relational if all its operators can be, exactly, and it is not slower.

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
    reasons = {sub.id: _reasons(sub, nodes[sub.id], typed, choices[sub.id], only_tasks, cyclic) for sub in subs}
    barred = {sub.id for sub in subs if only_tasks is not None or sub.id in cyclic or sub.is_global or not sub.sinks}
    in_programs = _programs(topology, exchanges, nodes, reasons, _Limits(choices, settings.accepted, barred), typed)
    queries = _queries(topology, exchanges, nodes, reasons, typed, in_programs)
    choices.require_relational(reasons)
    relational = _without_reasons(reasons)
    deciders = {sub.id: partial(_decided_by, choices[sub.id], only_tasks) for sub in subs}
    reason_texts = {sub.id: _reasons_text(reasons[sub.id], deciders[sub.id]) for sub in subs}
    remarks = borders(topology, reason_texts, relational)
    programmed = frozenset().union(*in_programs.values())
    decisions = [
        decision._replace(
            why=decision.why + _other_queries(sub.id, queries), border=remarks.get((sub.id, decision.operator))
        )
        for sub in subs
        for decision in _decisions(
            sub, nodes[sub.id], reasons[sub.id], deciders[sub.id], partial(_supported, typed, sub.id in programmed)
        )
    ]
    stateless = {number: frozenset({number}) for number in relational.difference(*queries.values())}
    relational_nodes = {
        number: _in_order(members, nodes, graph) for number, members in {**stateless, **queries}.items()
    }
    programs = {number: sinks_of(nodes[number]) for number in in_programs}
    return PathPlan(tuple(decisions), relational_nodes, queries, programs, typed)


class _Limits(NamedTuple):
    """What a user permits.

    Parameters
    ----------
    choices : PathChoices
    accepted : collection of str
        The names of the differences that `auto` may take.
    barred : collection of int
        The sub-topologies that can be no query.
    """

    choices: PathChoices
    accepted: Collection[str]
    barred: Collection[int]

    def asks(self, number: int) -> bool:
        """Return True if the user asks for the relational path of a sub-topology, with all differences."""
        return self.choices[number].path == RELATIONAL

    def allows(self, number: int) -> bool:
        """Return True if a sub-topology may be a query."""
        return number not in self.barred and self.choices[number].path != TASK


def _programs(
    topology: Topology,
    exchanges: Exchanges,
    nodes: Mapping[int, tuple[Node, ...]],
    reasons: Mapping[int, Reasons],
    limits: _Limits,
    typed: TypedGraph,
) -> Queries:
    """Return the queries that PySpark programs compute, and clear the reasons of their operators.

    Where only a difference speaks against it, this is the reason.
    """
    able = {number for number in nodes if limits.allows(number)}
    queries = dict[int, frozenset[int]]()
    for number, members in possible_queries(exchanges, able, nodes.keys()).items():
        if refusals_of(_in_order(members, nodes, typed.graph), topology, typed):
            continue
        differences = {
            member: {} if limits.asks(member) else unaccepted(nodes[member], limits.accepted, typed)
            for member in members
        }
        if not any(differences.values()):
            if any(map(limits.asks, members)) or _has_state(topology, members):
                queries[number] = members
        elif _has_state(topology, members):
            for member, of_member in differences.items():
                reasons[member].update(of_member)
    chosen = settled(queries, exchanges, ())
    for member in frozenset().union(*chosen.values()):
        reasons[member].update(dict.fromkeys(reasons[member]))
    return chosen


def _has_state(topology: Topology, members: Collection[int]) -> bool:
    return any(sub.stores for sub in topology.sub_topologies if sub.id in members)


def _without_reasons(reasons: Mapping[int, Reasons]) -> set[int]:
    """Return the sub-topologies that can take the relational path."""
    return {number for number, of_sub in reasons.items() if not any(of_sub.values())}


def _queries(
    topology: Topology,
    exchanges: Exchanges,
    nodes: Mapping[int, tuple[Node, ...]],
    reasons: Mapping[int, Reasons],
    typed: TypedGraph,
    programs: Queries,
) -> Queries:
    """Return all queries of Spark, and add reasons for stateful operators outside of queries."""
    programmed = frozenset().union(*programs.values())
    stateful = {sub.id for sub in topology.sub_topologies if sub.stores} - programmed
    able = _without_reasons(reasons) - programmed
    possible = possible_queries(exchanges, able, stateful)
    refused = {
        number: _refused(_in_order(members, nodes, typed.graph), topology, typed)
        for number, members in possible.items()
    }
    queries = settled({n: members for n, members in possible.items() if not refused[n]}, exchanges, stateful)
    reasons_of_nodes = {name: reason for of_sub in refused.values() for name, reason in of_sub.items()}
    for number in (able & stateful).difference(*queries.values()):
        of_operators = {node.name: reasons_of_nodes.get(node.name) for node in nodes[number]}
        of_repartitions = {node.name: OTHERS_TOO for node in nodes[number] if isinstance(node, g.Repartition)}
        reasons[number].update(of_operators if any(of_operators.values()) else of_repartitions)
    return {**queries, **programs}


def _refused(query: tuple[Node, ...], topology: Topology, typed: TypedGraph) -> dict[str, str]:
    """Return the reasons why the operators of a query cannot be one query."""
    refusals = {node: unsupported_in_query(node, query, typed) or through_reason(node, topology) for node in query}
    return {node.name: reason for node, reason in refusals.items() if reason}


def _in_order(members: Collection[int], nodes: Mapping[int, tuple[Node, ...]], graph: LogicalGraph) -> tuple[Node, ...]:
    """Return the operators of some sub-topologies, parents first."""
    names = {node.name for member in members for node in nodes[member]}
    return tuple(node for node in graph if node.name in names)


def _why_tasks(sub: SubTopology, choice: PathChoice) -> str | None:
    """Return the reason why a sub-topology runs better as tasks, even if its operators are relational."""
    if not sub.sinks:
        return _WRITES_NOTHING
    return _FASTER if choice == "auto" and not sub.stores else None


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


def _reasons(
    sub: SubTopology,
    nodes: tuple[Node, ...],
    typed: TypedGraph,
    choice: Choice,
    only_tasks: str | None,
    cyclic: Collection[int],
) -> Reasons:
    of_sub = _FEEDS_ITSELF if sub.id in cyclic else _why_tasks(sub, choice.path)
    if only_tasks is not None:
        return {node.name: FOLLOWED_BY_TASKS.format(only_tasks) for node in nodes}
    if choice.path == "task":
        chosen = [node.name for node in nodes if choice.key in (PATH, f"{PATH}.{node.name}")]
        return {node.name: f"{choice.key} is task" if node.name in chosen else of_sub for node in nodes}
    return {node.name: unsupported_reason(node, typed) or _too_different(node, choice.path) or of_sub for node in nodes}


def _too_different(node: Node, choice: PathChoice) -> str | None:
    difference = difference_of(node)
    if difference and choice == "auto":
        return f"only with a difference on the relational path: {difference}"
    return None


def _decisions(
    sub: SubTopology,
    nodes: tuple[Node, ...],
    reasons: Reasons,
    decided_by: Callable[[str | None], str],
    supported: Callable[[Node], str],
) -> Iterator[PathDecision]:
    blocking = next((name for name, reason in reasons.items() if reason), None)
    path = RELATIONAL if blocking is None else TASK
    for node in nodes:
        reason = reasons[node.name]
        why = reason or (f"with {blocking}, in one sub-topology" if blocking else supported(node))
        decider = decided_by(reason or (reasons[blocking] if blocking else None))
        yield PathDecision(node.name, sub.id, path, why, decider, None, node.declared_at)


def _decided_by(choice: Choice, only_tasks: str | None, reason: str | None) -> str:
    """Return the rule or setting that decides the path of an operator; `reason` says why it runs as a task, if so."""
    if only_tasks is not None:
        return only_tasks
    if reason == _FASTER:
        return MEASURED
    return choice.key if choice.path == (TASK if reason else RELATIONAL) else DECLARED


def _reasons_text(reasons: Reasons, decided_by: Callable[[str | None], str]) -> str:
    """Return why a sub-topology is relational or runs as tasks, in words."""
    refusals = [(name, reason) for name, reason in reasons.items() if reason]
    if not refusals:
        decider = decided_by(None)
        return f"is relational: {'its operators are exact there' if decider == DECLARED else f'{decider} says so'}"
    name, reason = refusals[0]
    return f"runs as tasks: {reason if len(set(reasons.values())) == 1 else f'{name}: {reason}'}"


def _other_queries(number: int, queries: Queries) -> str:
    """Return the other queries that compute a sub-topology, in words."""
    other_queries = sorted(other for other, members in queries.items() if number in members and other != number)
    return f"; computed in the query of sub-topology {' and '.join(map(str, other_queries))}" if other_queries else ""


def _supported(typed: TypedGraph, is_in_program: bool, node: Node) -> str:
    if is_in_program:
        return described(node, typed)
    difference = difference_of(node)
    return f"Spark's own form; {difference}" if difference else "exact: columns and UDFs"


def _by_hand(topology: Topology, settings: PathSettings) -> PathPlan:
    why = "the topology was put together by hand"
    reasons: dict[int, Reasons] = {sub.id: {node.name: why for node in sub.nodes} for sub in topology.sub_topologies}
    PathChoices(settings, reasons, {}).require_relational(reasons)
    nodes = [(sub.id, node) for sub in topology.sub_topologies for node in sub.nodes]
    decisions = (
        PathDecision(logical_node.name, sub, TASK, why, DECLARED, None, logical_node.declared_at)
        for sub, logical_node in nodes
    )
    return PathPlan(tuple(decisions), {}, {}, {}, TypedGraph(LogicalGraph([])))
