"""`plan_regions`: for every source, which columnar region begins there, or in words why records go one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.errors import KStreamsError, SerdeError
from kstreams.expressions import Expr, Operation, Schema, type_of, value
from kstreams.processor.columns.evaluation import columns_needed
from kstreams.processor.columns.forms import Fold, Project
from kstreams.processor.columns.source_columns import SourceColumns
from kstreams.processor.columns.view import View
from kstreams.processor.nodes import Node, Sink, Source, Step, SubTopology
from kstreams.serdes import BytesSerde, Serde

NUMBERS = (int, float)
KEYS = (str, int, bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Where a way through a region ends: a sink, or a step that folds; and what arrives there."""

    node: Sink | Step
    view: View

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All that must be computed of the source's records."""
        where = () if self.view.where is None else (self.view.where,)
        return (*where, self.view.key, *self.values)

    @property
    def values(self) -> tuple[Expr, ...]:
        """What is made of the values: the columns of a sink's value, or what the aggregations read."""
        fold = fold_of(self.node)
        if fold is None:
            return columns_needed(self.view.value)
        inputs = tuple(self.view.over_source(node) for slot in fold.aggregation.slots for node in slot.inputs)
        # Over all time a record without a value is dropped: the value is needed to see that.
        return inputs if fold.windows is not None else (*inputs, self.view.over_source(value.is_null()))


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A region: all that lies behind a source, up to where it is written or folded."""

    source: Source
    schema: Schema
    targets: tuple[Target, ...]

    @property
    def leaves(self) -> tuple[Expr, ...]:
        """What is read of the source's records, each once."""
        found = {repr(leaf): leaf for target in self.targets for expr in target.expressions for leaf in expr.leaves}
        return tuple(found.values())


Planned: TypeAlias = Plan | str
"""A region, or the reason why there is none."""


def fold_of(node: Node) -> Fold | None:
    """The fold that a step is, if it is one."""
    columns = getattr(node, "columns", None)
    return columns if isinstance(columns, Fold) else None


class _Refused(Exception):
    """Why a way cannot be taken in columns."""


def plan_regions(sub_topology: SubTopology, *, caching: bool = True) -> dict[str, Planned]:
    """What the tasks of a sub-topology do with the batches of each source.

    Parameters
    ----------
    sub_topology : SubTopology
    caching : bool
        Whether the record cache is on: without it every update is emitted, and records are as fast.

    Returns
    -------
    dict of str to Plan or str
        By the source's name; a text says why its records are processed one by one.
    """
    return {source.name: _plan(sub_topology, source, caching) for source in sub_topology.sources}


def _plan(sub_topology: SubTopology, source: Source, caching: bool) -> Planned:
    if sub_topology.is_global:
        return "global tables are read record by record"
    schema = Schema(_type(source.key), _type(source.value))
    try:
        plan = Plan(source, schema, tuple(_targets(sub_topology, source, View(schema))))
        _check_ways_apart(sub_topology, plan)
        for target in plan.targets:
            _check_types(target, schema)
            _check_fold(target, schema, caching)
        SourceColumns(source, plan.leaves)
    except (_Refused, KStreamsError) as refusal:
        return str(refusal)
    return plan


def _type(serde: Serde[Any] | None) -> Any:
    return (serde or BytesSerde()).type


def _targets(sub_topology: SubTopology, node: Node, view: View) -> Iterator[Target]:
    children = [child for child in sub_topology.nodes if node.name in getattr(child, "parents", ())]
    if not children:
        raise _Refused(f"{node.name} leads nowhere")
    for child in children:
        if len(child.parents) > 1:  # type: ignore[union-attr]
            raise _Refused(f"ways meet in {child.name}")
        if isinstance(child, Sink):
            _check_sink(child)
            yield Target(child, view)
        elif fold_of(child) is not None:
            yield Target(child, view)  # type: ignore[arg-type]
        else:
            form = child.columns  # type: ignore[union-attr]
            if not isinstance(form, Project):
                raise _Refused(f"{child.name} takes records one by one: it is not made of expressions")
            yield from _targets(sub_topology, child, view.then(form))


def _check_sink(sink: Sink) -> None:
    if callable(sink.topic) or sink.partitioner is not None:
        raise _Refused(f"{sink.name} chooses topic or partition for each record")


def _check_ways_apart(sub_topology: SubTopology, plan: Plan) -> None:
    """Ways that meet again, in a node, a store or a topic, would show in which order they were taken."""
    met: Counter[str] = Counter()
    for target in plan.targets:
        met.update({name for node in _behind(sub_topology, target.node) for name in _places(node)})
    for name, times in met.items():
        if times > 1:
            raise _Refused(f"ways meet in {name}")


def _behind(sub_topology: SubTopology, start: Node) -> list[Node]:
    found = [start]
    for node in sub_topology.nodes:
        if any(parent in {other.name for other in found} for parent in getattr(node, "parents", ())):
            found.append(node)
    return found


def _places(node: Node) -> set[str]:
    if isinstance(node, Sink):
        return {node.name, node.topic if isinstance(node.topic, str) else "any topic"}
    return {node.name, *getattr(node, "stores", ())}


def _check_types(target: Target, schema: Schema) -> None:
    for expr in target.expressions:
        kind = type_of(expr, schema).kind
        if kind is Any and not expr.operation.is_leaf:
            raise SerdeError(f"the type of {expr!r} is not known")
        for node in expr.walk():
            for part in node.inputs:
                if part.operation is Operation.VALUE and node.operation is not Operation.IS_NULL:
                    _check_whole_value(type_of(part, schema).kind, node)


def _check_fold(target: Target, schema: Schema, caching: bool) -> None:
    fold = fold_of(target.node)
    if fold is None:
        return
    if not caching or not (fold.emit_on_close or target.node.operator.kept.caching):  # type: ignore[union-attr]
        raise _Refused(f"{target.node.name} emits every update, since the record cache is off")
    if type_of(target.view.key, schema).kind not in KEYS:
        raise _Refused(f"{target.node.name} groups by keys that are not str, int or bytes")
    for slot in fold.aggregation.slots:
        for node in slot.inputs:
            kind = type_of(target.view.over_source(node), schema).kind
            if slot.operation in (Operation.MIN, Operation.MAX) and kind not in NUMBERS:
                raise _Refused(f"{slot!r} of {getattr(kind, '__name__', kind)} is not columnar")


def _check_whole_value(kind: Any, node: Expr) -> None:
    from kstreams.serdes import serde_of

    if serde_of(kind).arrow_type is None:
        raise SerdeError(f"{node!r} reads whole values, which have no columnar form")
