"""From a sub-topology to the closures of one task: bound from the sinks upwards, each knowing its children alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch
from types import TracebackType
from typing import Any

from kstreams.processor.context import Callbacks, NodeContext, TaskContext
from kstreams.processor.nodes import Node, Sink, Source, Step, SubTopology
from kstreams.processor.operator import Forward
from kstreams.processor.outputs import Outputs


def bind(
    sub_topology: SubTopology, context: TaskContext, outputs: Outputs, callbacks: Callbacks
) -> Mapping[str, Forward]:
    """The closure of every node by name; that of a source passes records to its children.

    Children are called in order of declaration, each with its whole subtree before the next.
    """
    children = children_of(sub_topology)
    bound: dict[str, Forward] = {}
    for node in reversed(sub_topology.nodes):
        below = {child: bound[child] for child in children[node.name]}
        bound[node.name] = _closure(node, NodeContext(node.name, context, below, callbacks), outputs)
    return bound


def children_of(sub_topology: SubTopology) -> dict[str, list[str]]:
    """The names of every node's children, in order of declaration."""
    children: dict[str, list[str]] = {node.name: [] for node in sub_topology.nodes}
    for node in sub_topology.nodes:
        for parent in () if isinstance(node, Source) else node.parents:
            children[parent].append(node.name)
    return children


@singledispatch
def _closure(node: Node, context: NodeContext, outputs: Outputs) -> Forward:
    raise TypeError(f"{node!r} is no node of a topology.")


@_closure.register
def _(node: Source, context: NodeContext, outputs: Outputs) -> Forward:
    return forward_to_all(list(context.children.values()))


@_closure.register
def _(node: Step, context: NodeContext, outputs: Outputs) -> Forward:
    closure = context.named(node.operator.bind(context, forward_to_all(list(context.children.values()))))
    context.share()
    return closure


@_closure.register
def _(node: Sink, context: NodeContext, outputs: Outputs) -> Forward:
    return context.named(outputs.forward_to(node))


def forward_to_all(children: list[Forward]) -> Forward:
    """One closure that calls all of these in turn."""
    if len(children) == 1:
        return children[0]
    return _to_two(*children) if len(children) == 2 else _to_many(tuple(children))


def _to_two(first: Forward, second: Forward) -> Forward:
    def forward(key: Any, value: Any, timestamp: int) -> None:
        first(key, value, timestamp)
        second(key, value, timestamp)

    return forward


def _to_many(children: tuple[Forward, ...]) -> Forward:
    def forward(key: Any, value: Any, timestamp: int) -> None:
        for child in children:
            child(key, value, timestamp)

    return forward


def in_order_of(sub_topology: SubTopology, callbacks: list[tuple[str, Callable[[], None]]]) -> list[Callable[[], None]]:
    """Callbacks of operators, parents before children."""
    place = {node.name: i for i, node in enumerate(sub_topology.nodes)}
    return [callback for _, callback in sorted(callbacks, key=lambda named: place[named[0]])]


def failed_operator(traceback: TracebackType | None, callbacks: Callbacks) -> str | None:
    """The operator whose closure is the innermost one of a traceback; None when no closure had been entered."""
    found = None
    while traceback is not None:
        found = callbacks.codes.get(traceback.tb_frame.f_code, found)
        traceback = traceback.tb_next
    return found
