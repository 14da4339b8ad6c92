"""`explain`: which operators work on columns and which on single records, and why."""

from __future__ import annotations

from typing import NamedTuple

from kstreams.config import Config
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from kstreams.processor.topology.nodes import SubTopology, TopologyNode, parents_of
from kstreams.processor.topology.topology import Topology


class Explanation(NamedTuple):
    """How one operator is run."""

    operator: str
    path: str
    why: str
    declared_at: str | None


def explain(topology: Topology, config: Config) -> list[Explanation]:
    """How the native engine runs every operator of a topology, in the order of its sub-topologies."""
    return [row for sub in topology.sub_topologies for row in _explain(sub, config.caches)]


def _explain(sub: SubTopology, caching: bool) -> list[Explanation]:
    reasons: dict[str, tuple[str, str]] = {}
    for source, planned in plan_regions(sub, caching=caching).items():
        if isinstance(planned, ColumnPlan):
            _explain_region(sub, planned, reasons)
        else:
            reasons |= dict.fromkeys(_behind(sub, {source}), ("records", planned))
    return [Explanation(node.name, *reasons[node.name], node.declared_at) for node in sub.nodes]


def _explain_region(sub: SubTopology, plan: ColumnPlan, reasons: dict[str, tuple[str, str]]) -> None:
    for node in _behind(sub, {plan.source.name}):
        reasons.setdefault(node, ("columns", "made of expressions"))
    for target in plan.targets:
        end = target.node.name
        reasons |= dict.fromkeys(_behind(sub, {end}) - {end}, ("records", f"behind {end}, where columns end"))
        if target.leaves_since is not None:
            reasons[end] = ("records", target.leaves_since)


def _behind(sub: SubTopology, starts: set[str]) -> set[str]:
    """These nodes and all that follow; nodes stand in topological order."""
    following = set(starts)
    for node in sub.nodes:
        following |= {node.name} if _follows(node, following) else set()
    return following


def _follows(node: TopologyNode, following: set[str]) -> bool:
    return any(parent in following for parent in parents_of(node))
