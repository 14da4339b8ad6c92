"""`plan_regions`: plans the columnar region after every source, or says why its records are processed one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from kstreams.errors import KStreamsError, SerdeError
from kstreams.expressions import Expr, Operation, Schema, type_of
from kstreams.expressions.arrow import TYPES
from kstreams.expressions.operations import BY_ANOTHER, SKETCHES
from kstreams.processor.columns.forms import AggregateForm, BatchForm, LookupForm, ProjectForm, SessionForm
from kstreams.processor.columns.projection import Lookup, SourceProjection, Target, aggregate_of, arrow_type, batch_of
from kstreams.processor.columns.source_columns import SourceColumns, is_struct
from kstreams.processor.topology.barriers import nodes_after, places_of
from kstreams.processor.topology.nodes import (
    ProcessorNode,
    SinkNode,
    SourceNode,
    SubTopology,
    TopologyNode,
    parents_of,
    processor_nodes,
)
from kstreams.serdes import BytesSerde, Serde

NUMBERS = (int, float)
KEYS = (str, int, bytes)
_BY_RECORD = (*BY_ANOTHER, *SKETCHES, Operation.QUANTILE, Operation.COLLECT)
"""The aggregations that columns do not merge."""


class GraphEdge(NamedTuple):
    """An edge from one operator of a region to the next, and the records that pass it."""

    parent: str
    child: str
    view: SourceProjection


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPlan:
    """A region: the operators after a source, up to sinks and aggregations."""

    source: SourceNode
    schema: Schema
    targets: tuple[Target, ...]
    edges: tuple[GraphEdge, ...]

    @property
    def leaves(self) -> tuple[Expr, ...]:
        """The parts of the source's records that are read, each once."""
        return leaves_of([expr for target in self.targets for expr in target.expressions])

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The lookups in tables, each after the lookups that its key needs."""
        return tuple({lookup.step: lookup for target in self.targets for lookup in target.view.lookups}.values())

    @property
    def only_filters(self) -> bool:
        """True if all paths leave the region: it then only saves the work for filtered records."""
        return all(target.leaves_since is not None for target in self.targets)


def leaves_of(expressions: Iterable[Expr]) -> tuple[Expr, ...]:
    """Return the parts of a record that expressions read, each once."""
    return tuple({repr(leaf): leaf for expr in expressions for leaf in expr.leaves}.values())


Planned: TypeAlias = ColumnPlan | str
"""A region, or the reason why there is no region."""


class _Refused(Exception):
    """The reason why a path cannot be processed in columns."""


def plan_regions(sub_topology: SubTopology, *, caching: bool = True) -> dict[str, Planned]:
    """Plan the processing of the batches of each source of a sub-topology.

    Parameters
    ----------
    sub_topology : SubTopology
    caching : bool
        True if the record cache is on. Without it every update is emitted, and columns are no faster.

    Returns
    -------
    dict of str to ColumnPlan or str
        By source; a string is the reason why its records are processed one by one.
    """
    return {source.name: _plan(sub_topology, source, caching) for source in sub_topology.sources}


def _plan(sub_topology: SubTopology, source: SourceNode, caching: bool) -> Planned:
    if sub_topology.is_global:
        return "global tables are read record by record"
    try:
        _check_processors(sub_topology)
        schema = Schema(_type(source.key), _type(source.value))
        paths = _Paths(sub_topology, source, schema, caching)
        targets = tuple(paths.targets_after(source, SourceProjection(schema)))
        plan = ColumnPlan(source, schema, targets, tuple(paths.edges))
        _check_worth(plan)
        _check_paths_apart(sub_topology, plan)
    except (_Refused, KStreamsError) as refusal:
        return str(refusal)
    return plan


def _type(serde: Serde[object] | None) -> Any:
    return (serde or BytesSerde()).type


class _Paths:
    """The search for the paths through a region."""

    def __init__(self, sub_topology: SubTopology, source: SourceNode, schema: Schema, caching: bool) -> None:
        self._nodes = sub_topology.nodes
        self._source = source
        self._schema = schema
        self._caching = caching
        self.edges: list[GraphEdge] = []

    def targets_after(self, node: TopologyNode, view: SourceProjection) -> list[Target]:
        """Return the ends of all paths of the records of `view`, which `node` forwards."""
        children = [child for child in self._nodes if node.name in parents_of(child)]
        if not children:
            raise _Refused(f"{node.name} leads nowhere")
        if not isinstance(node, SourceNode):
            self.edges += [GraphEdge(node.name, child.name, view) for child in children]
        return [target for child in children for target in self._through(child, view)]  # type: ignore[arg-type]

    def _through(self, child: SinkNode | ProcessorNode, view: SourceProjection) -> list[Target]:
        try:
            return self._in_columns(child, view)
        except (_Refused, KStreamsError) as refusal:
            return [Target(child, view, str(refusal))]

    def _in_columns(self, child: SinkNode | ProcessorNode, view: SourceProjection) -> list[Target]:
        if len(child.parents) > 1:
            raise _Refused(f"paths meet in {child.name}")
        if isinstance(child, SinkNode) or isinstance(child.columns, AggregateForm | SessionForm | BatchForm):
            target = Target(child, view)
            self._check(target)
            return [target]
        new = self._after(child, view)
        self._check_expressions((*new.dropped, *new.changed))
        return self.targets_after(child, new)

    def _after(self, child: ProcessorNode, view: SourceProjection) -> SourceProjection:
        if isinstance(child.columns, LookupForm):
            joined = view.joined(child.name, child.columns)
            _check_key(child, type_of(joined.lookups[-1].place, self._schema).kind)
            return joined
        if isinstance(child.columns, ProjectForm):
            return view.then(child.columns)
        raise _Refused(f"{child.name} takes records one by one: it is not made of expressions")

    def _check(self, target: Target) -> None:
        if isinstance(target.node, SinkNode):
            _check_sink(target.node)
        if _takes_struct_keys(target):
            raise _Refused(f"{target.node.name} takes keys that are objects of a struct")
        self._check_expressions(target.expressions)
        _check_fold(target, self._schema, self._caching)

    def _check_expressions(self, expressions: tuple[Expr, ...]) -> None:
        _check_types(expressions, self._schema)
        leaves = leaves_of(expressions)
        SourceColumns(self._source, leaves)
        for leaf in leaves:
            if leaf.operation is Operation.COLUMN:
                arrow_type(leaf.detail)


def _check_processors(sub_topology: SubTopology) -> None:
    for step in processor_nodes(sub_topology):
        raise _Refused(f"{step.name} may schedule punctuators of stream time, to be called between any two records")


def _check_worth(plan: ColumnPlan) -> None:
    """Refuse a region that all records would leave unfiltered: it would be a detour."""
    for target in plan.targets if plan.only_filters else ():
        if target.view.where is None:
            raise _Refused(str(target.leaves_since))


def _check_sink(sink: SinkNode) -> None:
    if callable(sink.topic) or sink.partitioner is not None:
        raise _Refused(f"{sink.name} chooses topic or partition for each record")


def _check_paths_apart(sub_topology: SubTopology, plan: ColumnPlan) -> None:
    """Refuse paths that meet again in a node, a store or a topic, where results depend on the order of processing.

    Refuse also a lookup in a table that another path changes.
    """
    met: Counter[str] = Counter()
    for target in plan.targets:
        reachable = [target.node, *nodes_after(sub_topology, target.node)]
        names = (name for node in reachable for name in (node.name, *places_of(node, sub_topology)))
        met.update(dict.fromkeys(names).keys())
    for name, times in met.items():
        if times > 1:
            raise _Refused(f"paths meet in {name}")
    steps = {lookup.step for lookup in plan.lookups}
    for store in {store for node in sub_topology.nodes if node.name in steps for store in getattr(node, "stores", ())}:
        if store in met:
            raise _Refused(f"paths meet in {store}")


def _takes_struct_keys(target: Target) -> bool:
    """Return whether a function over batches takes keys that no column holds."""
    batched = batch_of(target.node)
    return batched is not None and batched.with_key and is_struct(target.view.key)


def _check_types(expressions: tuple[Expr, ...], schema: Schema) -> None:
    for expr in expressions:
        kind = type_of(expr, schema).kind
        if kind is Any and not expr.operation.is_leaf:
            raise SerdeError(f"the type of {expr!r} is not known")
        if kind not in TYPES and not expr.operation.is_leaf:
            raise SerdeError(f"{expr!r} is a {getattr(kind, '__name__', kind)}, which has no columnar form")
        for node in expr.walk():
            for part in node.inputs:
                if part.operation is Operation.VALUE and node.operation is not Operation.IS_NULL:
                    _check_whole_value(type_of(part, schema).kind, node)


def _check_fold(target: Target, schema: Schema, caching: bool) -> None:
    fold = aggregate_of(target.node)
    if fold is None:
        return
    if isinstance(fold, SessionForm) and fold.emit_on_close:
        raise _Refused(f"{target.node.name} closes sessions after any record")
    if not caching or not (fold.emit_on_close or target.node.operator.table_rows.caching):  # type: ignore[union-attr]
        raise _Refused(f"{target.node.name} emits every update, since the record cache is off")
    _check_key(target.node, type_of(target.view.key, schema).kind)
    for slot in fold.aggregation.slots:
        if slot.operation in _BY_RECORD:
            raise _Refused(f"{slot!r} takes records one by one")
        for node in slot.inputs:
            kind = type_of(target.view.over_source(node), schema).kind
            if slot.operation in (Operation.MIN, Operation.MAX) and kind not in NUMBERS:
                raise _Refused(f"{slot!r} of {getattr(kind, '__name__', kind)} is not columnar")


def _check_key(node: TopologyNode, kind: object) -> None:
    if kind not in KEYS:
        raise _Refused(f"{node.name} takes keys that are not str, int or bytes")


def _check_whole_value(kind: object, node: Expr) -> None:
    from kstreams.serdes import serde_of

    if serde_of(kind).arrow_type is None:
        raise SerdeError(f"{node!r} reads whole values, which have no columnar form")
