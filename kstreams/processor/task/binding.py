"""The binding of a sub-topology: creates the closures of one task from the sinks upwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, singledispatch

import kstreams.processor.operators.process.rows  # noqa: F401 (registers how processors are bound)
from kstreams.processor.context.chain import Link, Statement, StatementOperator, passing_on
from kstreams.processor.context.delayed_results import release_before
from kstreams.processor.context.forwarded import NO_CHILD, ForwardedCounts
from kstreams.processor.context.operator_code import OperatorCode
from kstreams.processor.context.operator_context import OperatorContext, Registrations, TaskContext, bind_operator
from kstreams.processor.context.record_functions import with_current
from kstreams.processor.context.tracing import Tracing
from kstreams.processor.task.outputs import OutputBuffers
from kstreams.processor.topology.barriers import barriers
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, SubTopology, TopologyNode
from kstreams.processor.topology.operator import Forward


def bind(
    sub_topology: SubTopology,
    context: TaskContext,
    outputs: OutputBuffers,
    registrations: Registrations,
    code: OperatorCode,
    tracing: Tracing | None = None,
) -> Mapping[str, Forward]:
    """Return the closure of every node by name; the closure of a source passes records to its children.

    Children are called in order of declaration, each with its whole subtree before the next.
    """
    return _Closures(sub_topology, context, outputs, registrations, code, tracing)


class _Closures(dict[str, Forward]):
    """The closures by node. A chain of simple steps is compiled for each place where records enter it."""

    def __init__(
        self,
        sub_topology: SubTopology,
        context: TaskContext,
        outputs: OutputBuffers,
        registrations: Registrations,
        code: OperatorCode,
        tracing: Tracing | None,
    ) -> None:
        self._tracing = tracing
        self._nodes = {node.name: node for node in sub_topology.nodes}
        self._context = context
        self._outputs = outputs
        self._registrations = registrations
        self._code = code
        self._children = children_of(sub_topology)
        held_back = registrations.held_back
        waits = barriers(sub_topology)
        self._barriers = {name: release_before(of_node, held_back) for name, of_node in waits.items()}
        self._chains: dict[str, tuple[Link, ...]] = {}
        for node in reversed(sub_topology.nodes):
            self._add(node)

    def _add(self, node: TopologyNode) -> None:
        statement = _statement(node, self._context, self._outputs)
        if statement is None:
            children = {child: self._child_closure(node.name, child) for child in self._children[node.name]}
            below = children or self._without_children(node.name)
            connected = node.stores if isinstance(node, ProcessorNode) else ()
            bound = OperatorContext(node.name, self._context, below, self._registrations, self._code, connected)
            closure = self._after_barrier(node.name, _closure(node, bound, self._outputs, self._code))
            self[node.name] = self._traced(node.name, closure)
        else:
            links = (Link(node.name, statement), *self._links_after(node.name))
            let_pass = self._barriers.get(node.name)
            first = () if let_pass is None else (Link(node.name, Statement("{let_pass}()", {"let_pass": let_pass})),)
            self._chains[node.name] = (*first, *links)

    def _after_barrier(self, name: str, closure: Forward) -> Forward:
        let_pass = self._barriers.get(name)
        if let_pass is None:
            return closure

        def process(key: object, value: object, timestamp: int) -> None:
            let_pass()
            closure(key, value, timestamp)

        return process

    def _links_after(self, name: str) -> tuple[Link, ...]:
        """Return the links after a simple step: the chain of its only child, or a call of all its children.

        With tracing, each child is a closure of its own, which may have a span.
        """
        children = self._children[name]
        if not children:
            return ()
        if len(children) == 1 and children[0] in self._chains and self._tracing is None:
            return (*self._counted(name, children[0]), *self._chains[children[0]])
        return (Link(name, passing_on(forward_to_all([self._child_closure(name, child) for child in children]))),)

    def _counted(self, name: str, child: str) -> tuple[Link, ...]:
        """Return the link that counts the records a node passes to its child."""
        counts = self._counts_of(name)
        return () if counts is None else (Link(name, counts.statement(name, child)),)

    def _child_closure(self, name: str, child: str) -> Forward:
        """Return the closure of a node's child, as the node calls it."""
        counts = self._counts_of(name)
        return self[child] if counts is None else counts.counting(name, child, self[child])

    def _without_children(self, name: str) -> dict[str, Forward]:
        """Return the counter of the results of an operator without children."""
        counts = self._counts_of(name)
        return {} if counts is None else {NO_CHILD: counts.counting(name, NO_CHILD, forward_to_all([]))}

    def _counts_of(self, name: str) -> ForwardedCounts | None:
        """Return the counters of a node, if records are counted; sources count the records they read."""
        return None if isinstance(self._nodes[name], SourceNode) else self._context.forwarded

    def __missing__(self, name: str) -> Forward:
        closure = self[name] = self._traced(name, self._code.chained(self._chains[name]))
        return closure

    def _traced(self, name: str, closure: Forward) -> Forward:
        return closure if self._tracing is None else self._tracing.traced(self._nodes[name], closure)


def children_of(sub_topology: SubTopology) -> dict[str, list[str]]:
    """Return the names of every node's children, in order of declaration."""
    children: dict[str, list[str]] = {node.name: [] for node in sub_topology.nodes}
    for node in sub_topology.nodes:
        for parent in () if isinstance(node, SourceNode) else node.parents:
            children[parent].append(node.name)
    return children


def _statement(node: TopologyNode, context: TaskContext, outputs: OutputBuffers) -> Statement | None:
    """Return the statement of a simple step or a sink; None for nodes that need a closure of their own."""
    if isinstance(node, SinkNode):
        return outputs.statement_for(node)
    if isinstance(node, ProcessorNode) and isinstance(node.operator, StatementOperator):
        simple = with_current(node.operator, context.current).statement()
        if "{dropped}" not in simple.text:
            return simple
        return Statement(simple.text, {"dropped": partial(context.drop, node.name), **simple.names})
    return None


@singledispatch
def _closure(node: TopologyNode, context: OperatorContext, outputs: OutputBuffers, code: OperatorCode) -> Forward:
    raise TypeError(f"{node!r} is no node of a topology.")


@_closure.register
def _(node: SourceNode, context: OperatorContext, outputs: OutputBuffers, code: OperatorCode) -> Forward:
    return forward_to_all(list(context.children.values()))


@_closure.register
def _(node: ProcessorNode, context: OperatorContext, outputs: OutputBuffers, code: OperatorCode) -> Forward:
    assert not isinstance(node.operator, StatementOperator)  # they are in chains
    operator = with_current(node.operator, context.current)
    return bind_operator(operator, context, forward_to_all(list(context.children.values())))


@_closure.register
def _(node: SinkNode, context: OperatorContext, outputs: OutputBuffers, code: OperatorCode) -> Forward:
    return code.named(node.name, outputs.forward_to(node))


def forward_to_all(children: list[Forward]) -> Forward:
    """Return one closure that calls all of these in turn."""
    if len(children) == 1:
        return children[0]
    return _to_two(*children) if len(children) == 2 else _to_many(tuple(children))


def _to_two(first: Forward, second: Forward) -> Forward:
    def forward(key: object, value: object, timestamp: int) -> None:
        first(key, value, timestamp)
        second(key, value, timestamp)

    return forward


def _to_many(children: tuple[Forward, ...]) -> Forward:
    def forward(key: object, value: object, timestamp: int) -> None:
        for child in children:
            child(key, value, timestamp)

    return forward


def in_order_of(sub_topology: SubTopology, callbacks: list[tuple[str, Callable[[], None]]]) -> list[Callable[[], None]]:
    """Return callbacks of operators, parents before children."""
    place = {node.name: i for i, node in enumerate(sub_topology.nodes)}
    return [callback for _, callback in sorted(callbacks, key=lambda named: place[named[0]])]
