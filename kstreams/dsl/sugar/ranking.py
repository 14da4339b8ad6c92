"""Ranking: the values of a group with the highest scores, best first; the earlier of equal ones first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.types import TypeOf
from kstreams.dsl.graph.signatures import check_call
from kstreams.dsl.sugar.known_types import known
from kstreams.errors import TopologyError
from kstreams.expressions import Expr, as_function
from kstreams.kernel.source_line import declared_at

Aggregator = Callable[[Any, Any, list[Any]], list[Any]]


def list_type(value: TypeOf, n: int) -> Any:
    """Return the type of lists of the best `n` values; raise TopologyError if the type of the values is not known."""
    if n < 1:
        raise TopologyError(f"top_n() at {declared_at()} keeps {n} values: give 1 or more")
    kind = value.python
    if kind is None:
        known(value, "value", "top_n()")
        raise TopologyError(f"top_n() at {declared_at()} keeps lists of a type, not of a serde: write value=<type>")
    return list[kind]  # type: ignore[valid-type]  # a type that is known at run time only


def best_of(n: int, score: Callable[[Any], Any]) -> Aggregator:
    """Return an aggregator that retains the best `n` values.

    Examples
    --------
    >>> add, best = best_of(2, len), []
    >>> for word in ["a", "ccc", "bb", "ddd"]:
    ...     best = add("key", word, best)
    >>> best
    ['ccc', 'ddd']
    """

    def add(key: object, value: object, best: list[Any]) -> list[Any]:
        return sorted([*best, value], key=score, reverse=True)[:n]

    return add


def score_of(by: Callable[[Any], Any] | Expr, value: object) -> Callable[[Any], Any]:
    """Return the function that returns the score of a value.

    Raises
    ------
    TopologyError
        If `by` does not take a value, or is an expression that does not fit its type.
    """
    if isinstance(by, Expr):
        return as_function(by, ["value"], value=value)
    check_call(f"top_n() at {declared_at()}", "by", by, "value")
    return by
