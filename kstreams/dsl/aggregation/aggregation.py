"""What `aggregate` was given: two functions, or named expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.graph import Expressions, Fold
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at


def fold_or_expressions(
    initializer: Callable[[], Any] | None,
    aggregator: Callable[[Any, Any, Any], Any] | None,
    fields: dict[str, Expr],
    merger: Callable[[Any, Any, Any], Any] | None = None,
) -> Fold | Expressions:
    """What `aggregate` was given."""
    for name, field in fields.items():
        if not isinstance(field, Expr):
            raise TopologyError(
                f"aggregate() at {declared_at()} takes expressions as fields, such as {name}=ks.len(), not {field!r}"
            )
    if fields and initializer is None and aggregator is None and merger is None:
        return Expressions(fields)
    if not fields and initializer is not None and aggregator is not None:
        return Fold(initializer, aggregator, merger)
    raise TopologyError(
        f"aggregate() at {declared_at()} takes either an initializer and an aggregator, or named expressions "
        "such as count=ks.len()"
    )
