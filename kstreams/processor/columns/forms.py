"""The columnar forms of operators: what an operator does to whole batches, as data made of expressions."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.expressions import Aggregation, Expr
from kstreams.windows import SessionWindows, TimeWindows


@dataclass(frozen=True, slots=True, eq=False)
class ProjectForm:
    """Keeps some records and gives them a new key, a new value, or both: any stateless step made of expressions.

    Parameters
    ----------
    where : Expr, optional
        Which records are forwarded; null is no.
    key, value : Expr, optional
        The new key and value; without them they stay as they are.
    key_type, value_type : type, optional
        What a `ks.struct` is built as that gives the new key or value, when a type was declared.
    counts : bool
        Whether the other records count as dropped: a batch that has any is processed record by record.
    """

    where: Expr | None = None
    key: Expr | None = None
    value: Expr | None = None
    key_type: object = None
    value_type: object = None
    counts: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LookupForm:
    """Joins each record with the row that a table has for it at that moment.

    Parameters
    ----------
    joined : Expr
        The new value, over the record and `ks.right`.
    key : Expr
        The key of the row, over the record.
    left : bool
        Whether records without a row are forwarded.
    row : type
        Of the table's values.
    result : type, optional
        What a `ks.struct` value is built as.
    """

    joined: Expr
    key: Expr
    left: bool
    row: object
    result: object = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchForm:
    """Hands the records of a batch to a function at once.

    Parameters
    ----------
    fields : tuple of str, optional
        The columns of a value; None: the value itself is one.
    with_key : bool
        Whether the function gets the keys too.
    """

    fields: tuple[str, ...] | None
    with_key: bool


@dataclass(frozen=True, slots=True, eq=False)
class AggregateForm:
    """Aggregates by key, over all time or by windows that begin at fixed times.

    Parameters
    ----------
    aggregation : Aggregation
        What to keep.
    windows : TimeWindows, optional
        None: over all time.
    emit_on_close : bool
        Whether only the final results of windows are emitted, once they have closed.
    """

    aggregation: Aggregation
    windows: TimeWindows | None = None
    emit_on_close: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SessionForm:
    """Aggregates by key and session.

    Parameters
    ----------
    aggregation : Aggregation
        What to keep.
    windows : SessionWindows
    emit_on_close : bool
        Whether only final results are emitted: then records go one by one, since any of them may close sessions.
    """

    aggregation: Aggregation
    windows: SessionWindows
    emit_on_close: bool
