"""`Target`: the end of a path through a column region, and the columns that arrive there."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.expressions import Expr, Operation, col, value
from kstreams.processor.columns.evaluation import columns_needed
from kstreams.processor.columns.forms import AggregateForm, BatchForm, SessionForm
from kstreams.processor.columns.projection import SourceProjection
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, TopologyNode


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The end of a path through a region, and the columns that arrive there.

    A path ends at a sink or an aggregation, or it leaves the region at an operator that takes records one by one;
    `leaves_since` is then the reason.
    """

    node: SinkNode | ProcessorNode
    view: SourceProjection
    leaves_since: str | None = None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """All expressions that must be computed over the source's records."""
        before = (*(expr for lookup in self.view.lookups for expr in lookup.expressions), *self.view.dropped)
        if self.leaves_since is not None:
            return (*before, *self.view.changed)
        where = () if self.view.where is None else (self.view.where,)
        batched = batch_of(self.node)
        if batched is not None and not batched.with_key and self.view.key.operation is Operation.KEY:
            return (*before, *where, *self.values)
        return (*before, *where, *columns_needed(self.view.key), *self.values)

    @property
    def values(self) -> tuple[Expr, ...]:
        """The expressions over the values: the columns of a sink's value, or the inputs of the aggregations."""
        fold = aggregate_of(self.node)
        batched = batch_of(self.node)
        if batched is not None and batched.fields is not None:
            return tuple(self.view.over_source(col(name)) for name in batched.fields)
        if fold is None:
            return columns_needed(self.view.value)
        inputs = tuple(self.view.over_source(node) for slot in fold.aggregation.slots for node in slot.inputs)
        # An aggregation over all time drops a record without a value, so it needs to know if there is one.
        return inputs if fold.windows is not None else (*inputs, self.view.over_source(value.is_null()))


def aggregate_of(node: TopologyNode) -> AggregateForm | SessionForm | None:
    """Return the columnar form of an aggregation; None for any other node."""
    columns = getattr(node, "columns", None)
    return columns if isinstance(columns, AggregateForm | SessionForm) else None


def batch_of(node: TopologyNode) -> BatchForm | None:
    """Return the columnar form of a function over batches; None for any other node."""
    columns = getattr(node, "columns", None)
    return columns if isinstance(columns, BatchForm) else None
