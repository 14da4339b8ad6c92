"""`SourceProjection`: the effect of a chain of stateless steps, as three expressions over the source's records.

Steps are not run one after the other: the chain `filter(p).map_values(e).filter(q)` is "where p and q(e), value e".
Expressions have no effects and never fail, so evaluating them before a filter that would have dropped a record is safe.

A `Lookup` has the expressions over the rows that an operator looks up in a table. A `Target` is the end of a path
through a region, with the columns that arrive there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from kstreams.errors import SerdeError, TopologyError
from kstreams.expressions import Expr, Operation, Schema, Typed, col, key, literal, struct_class, type_of, value
from kstreams.expressions.arrow import TYPES
from kstreams.processor.columns.forms import AggregateForm, BatchForm, LookupForm, ProjectForm, SessionForm
from kstreams.processor.columns.source_columns import columns_needed
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, TopologyNode


@dataclass(frozen=True, slots=True)
class OfRow:
    """A column of the rows that a step looks up: the expression `read` over the row as `ks.value`."""

    step: str
    read: Expr
    row: object

    @property
    def kind(self) -> Typed:
        """The type of the column; null if there is no row."""
        return type_of(self.read, Schema(value=self.row))

    def __str__(self) -> str:
        return f"{self.step}[{self.read!r}]"


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A step that looks up rows.

    Parameters
    ----------
    step : str
        The name of the step.
    place : Expr
        The key of the row, an expression over the columns before this step.
    where : Expr or None
        The condition under which a record reaches this step; None if all do.
    """

    step: str
    place: Expr
    where: Expr | None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions that must be computed before the lookup."""
        return (self.place,) if self.where is None else (self.place, self.where)


def of_row(step: str, read: Expr, row: object) -> Expr:
    """Return the column `read` of the rows of a step, which have type `row`.

    Examples
    --------
    >>> of_row("JOIN", col("rate") * 2, dict[str, float])
    JOIN[(ks.col('rate') * 2)]
    """
    return Expr(Operation.COLUMN, (), OfRow(step, read, row))


def reading_rows(expr: Expr, step: str, row: object) -> Expr:
    """Return a join's projection with the columns of a step in place of `ks.right`."""
    if expr.operation is Operation.RIGHT:
        return of_row(step, value, row)
    if expr.operation is Operation.RIGHT_FIELD:
        return of_row(step, col(expr.detail), row)
    return Expr(expr.operation, tuple(reading_rows(node, step, row) for node in expr.inputs), expr.detail)


def arrow_type(column: OfRow) -> pa.DataType:
    """Return the Arrow type of a column. Raises SerdeError if it has no columnar form."""
    arrow_type = TYPES.get(column.kind.kind)
    if arrow_type is None:
        raise SerdeError(f"{column} is a {column.kind.kind}, which has no columnar form")
    return arrow_type


@dataclass(frozen=True, slots=True, eq=False)
class SourceProjection:
    """The records of a source that pass a chain, with their new keys and values.

    Parameters
    ----------
    source : Schema
        Types of the source's key and value.
    where : Expr or None
        The condition under which a record passes; None if all pass.
    key, value : Expr
        Expressions over the source's columns; `ks.key` and `ks.value` if no step changed them.
    key_class, value_class : type or None
        The class of a key or value that is a `ks.struct`.
    dropped : tuple of Expr
        The conditions under which records are dropped and counted, one expression per operator that drops.
    lookups : tuple of Lookup
        The lookups in tables, in their order.
    """

    source: Schema
    where: Expr | None = None
    key: Expr = key
    value: Expr = value
    key_class: object = None
    value_class: object = None
    dropped: tuple[Expr, ...] = ()
    lookups: tuple[Lookup, ...] = ()

    @property
    def changed(self) -> tuple[Expr, ...]:
        """The expressions to compute for its rows; keys and values that no step changed are decoded instead."""
        where = () if self.where is None else (self.where,)
        key = () if self.key.operation is Operation.KEY else columns_needed(self.key)
        value = () if self.value.operation is Operation.VALUE else columns_needed(self.value)
        return (*where, *key, *value)

    def then(self, step: ProjectForm) -> SourceProjection:
        """Return the view after one more step.

        Raises
        ------
        TopologyError
            If the operator reads a part that no column holds, such as a field of a value that is not a struct.
        """
        new = self
        where = self.where
        if step.where is not None:
            condition = self.over_source(step.where)
            refused = (~condition if where is None else where & ~condition,) if step.counts else ()
            where = condition if where is None else where & condition
            new = replace(self, where=where, dropped=(*self.dropped, *refused))
        if step.key is not None:
            new = replace(new, key=self.over_source(step.key), key_class=self._class_of(step.key, step.key_type))
        if step.value is not None:
            value = self.over_source(step.value)
            new = replace(new, value=value, value_class=self._class_of(step.value, step.value_type))
        return new

    def joined(self, name: str, step: LookupForm) -> SourceProjection:
        """Return the view after a lookup by the step of this name. Raises the errors of `then`."""
        place = self.over_source(step.key)
        where = self.where
        refused = self.over_source(value.is_null())
        if not step.left:
            refused = refused | self.over_source(step.key.is_null())
        refused = refused if where is None else where & refused
        matches = of_row(name, ~value.is_null(), step.row)
        joined_value = reading_rows(step.joined, name, step.row)
        return replace(
            self,
            where=where if step.left else matches if where is None else where & matches,
            value=self.over_source(joined_value),
            value_class=self._class_of(joined_value, step.result),
            dropped=(*self.dropped, refused),
            lookups=(*self.lookups, Lookup(name, place, where)),
        )

    def _class_of(self, value: Expr, declared: object) -> object:
        """Return the class of a key or value: of its `ks.struct`, of the key or value it passes on, or as declared."""
        before = {Operation.KEY: self.key_class, Operation.VALUE: self.value_class}.get(value.operation)
        if value.operation is Operation.STRUCT:
            return struct_class(self.over_source(value), self.source, declared)
        return before or declared

    def over_source(self, expr: Expr) -> Expr:
        """Return an expression over this view's records as an expression over the source's records."""
        if expr.operation is Operation.KEY:
            return self.key
        if expr.operation is Operation.VALUE:
            return self.value
        if expr.operation is Operation.FIELD:
            return self._field(expr)
        if expr.operation in (Operation.WINDOW_START, Operation.WINDOW_END):
            raise TopologyError(f"{expr!r} reads a windowed key")
        if not expr.inputs:
            return expr
        inputs = tuple(self.over_source(node) for node in expr.inputs)
        if expr.operation is Operation.IS_NULL and inputs[0].operation is Operation.STRUCT:
            return literal(False)
        return Expr(expr.operation, inputs, expr.detail)

    def _field(self, expr: Expr) -> Expr:
        if self.value.operation is Operation.VALUE:
            return expr
        if self.value.operation is Operation.STRUCT and expr.detail in self.value.detail:
            field: Expr = self.value.inputs[self.value.detail.index(expr.detail)]
            return field
        raise TopologyError(f"{expr!r} is not a field that the expression {self.value!r} makes")


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
