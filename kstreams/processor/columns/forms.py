"""The columnar forms of operators: the effect of an operator on whole batches, as expressions."""

from __future__ import annotations

from dataclasses import dataclass

from kstreams.expressions import Aggregation, Expr
from kstreams.windows import SessionWindows, TimeWindows


@dataclass(frozen=True, slots=True, eq=False)
class ProjectForm:
    """A stateless step made of expressions: it filters records and gives them a new key, a new value, or both.

    Parameters
    ----------
    where : Expr, optional
        The condition under which a record is forwarded; null counts as false.
    key, value : Expr, optional
        The new key and value; None leaves them unchanged.
    key_type, value_type : type, optional
        The declared class of a `ks.struct` that gives the new key or value.
    counts : bool
        True if the other records count as dropped: a batch with such a record is processed record by record.
    """

    where: Expr | None = None
    key: Expr | None = None
    value: Expr | None = None
    key_type: object = None
    value_type: object = None
    counts: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LookupForm:
    """A join of each record with the table's row at that moment.

    Parameters
    ----------
    joined : Expr
        The new value, an expression over the record and `ks.right`.
    key : Expr
        The key of the row, an expression over the record.
    left : bool
        True if records without a row are forwarded.
    row : type
        The type of the table's values.
    result : type, optional
        The class of a value that is a `ks.struct`.
    """

    joined: Expr
    key: Expr
    left: bool
    row: object
    result: object = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchForm:
    """A function that takes all records of a batch at once.

    Parameters
    ----------
    fields : tuple of str, optional
        The fields of a value that are columns; None if the value itself is the column.
    with_key : bool
        True if the function gets the keys too.
    """

    fields: tuple[str, ...] | None
    with_key: bool


@dataclass(frozen=True, slots=True, eq=False)
class AggregateForm:
    """An aggregation by key, over all time or by windows that begin at fixed times.

    Parameters
    ----------
    aggregation : Aggregation
        The aggregates to compute.
    windows : TimeWindows, optional
        None aggregates over all time.
    emit_on_close : bool
        True if only the final results of windows are emitted, after the windows have closed.
    """

    aggregation: Aggregation
    windows: TimeWindows | None = None
    emit_on_close: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class SessionForm:
    """An aggregation by key and session.

    Parameters
    ----------
    aggregation : Aggregation
        The aggregates to compute.
    windows : SessionWindows
    emit_on_close : bool
        True if only final results are emitted: records are then processed one by one, as each may close sessions.
    """

    aggregation: Aggregation
    windows: SessionWindows
    emit_on_close: bool
