"""`SourceProjection`: the effect of a chain of stateless steps, as three expressions over the source's records.

Steps are not run one after the other: the chain `filter(p).map_values(e).filter(q)` is "where p and q(e), value e".
Expressions have no effects and never fail, so evaluating them before a filter that would have dropped a record is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kstreams.errors import TopologyError
from kstreams.expressions import Expr, Operation, Schema, key, literal, struct_class, value
from kstreams.processor.columns.evaluation import columns_needed
from kstreams.processor.columns.forms import LookupForm, ProjectForm
from kstreams.processor.columns.lookups import Lookup, of_row, reading_rows


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
