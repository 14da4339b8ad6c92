"""`SourceProjection`: what a chain of stateless steps does to a source's records, as three expressions over the source.

Steps are not run one after the other: the chain `filter(p).map_values(e).filter(q)` is "where p and q(e), value e".
Expressions have no effects and never fail, so evaluating them before a filter that would have spared a record is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kstreams.errors import TopologyError
from kstreams.expressions import Expr, Operation, Schema, key, literal, struct_class, value
from kstreams.processor.columns.evaluation import columns_needed
from kstreams.processor.columns.forms import LookupForm, ProjectForm
from kstreams.processor.columns.lookups import Lookup, of_row, reading_rows


@dataclass(frozen=True, slots=True, eq=False)
class SourceProjection:
    """Records of a source that a chain lets through, under their new keys and values.

    Parameters
    ----------
    source : Schema
        Types of the source's key and value.
    where : Expr or None
        Which records; None is all.
    key, value : Expr
        Over the source's columns; `ks.key` and `ks.value` themselves where nothing changed them.
    key_class, value_class : type or None
        What a key or value is built as that is a `ks.struct`.
    dropped : tuple of Expr
        Which records are dropped before, and must be counted: one expression for each operator that drops.
    lookups : tuple of Lookup
        The lookups in tables before, in their order.
    """

    source: Schema
    where: Expr | None = None
    key: Expr = key
    value: Expr = value
    key_class: Any = None
    value_class: Any = None
    dropped: tuple[Expr, ...] = ()
    lookups: tuple[Lookup, ...] = ()

    @property
    def changed(self) -> tuple[Expr, ...]:
        """What must be computed to make its rows; keys and values that no step changed are decoded as they are."""
        where = () if self.where is None else (self.where,)
        key = () if self.key.operation is Operation.KEY else columns_needed(self.key)
        value = () if self.value.operation is Operation.VALUE else columns_needed(self.value)
        return (*where, *key, *value)

    def then(self, step: ProjectForm) -> SourceProjection:
        """The view after one more step.

        Raises
        ------
        TopologyError
            When the operator reads something that no column holds, such as a field of a value that is no struct.
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
        """The view after a lookup in a table, by the step of this name; raises as `then` does."""
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

    def _class_of(self, value: Expr, declared: object) -> Any:
        """The class of a new key or value that is a `ks.struct`, of one that was made before, or as declared."""
        before = {Operation.KEY: self.key_class, Operation.VALUE: self.value_class}.get(value.operation)
        if value.operation is Operation.STRUCT:
            return struct_class(self.over_source(value), self.source, declared)
        return before or declared

    def over_source(self, expr: Expr) -> Expr:
        """An expression over this view's records as one over the source's."""
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
