"""Sketches: approximate aggregates of a constant size, as bytes, which Apache DataSketches computes.

A HyperLogLog counts different values, and a t-digest has quantiles. Both can be merged, so that they fit every kind of
window.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from kstreams.errors import TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.functions import epoch

_LOG_BUCKETS = 12
_COMPRESSION = 200


def require_sketches(expr: Expr) -> None:
    """Raise ImportError if the library is not installed."""
    try:
        import datasketches  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{expr!r} needs datasketches: pip install 'kstreams-dsl[sketches]'", name="datasketches"
        ) from error


def with_value(sketch: bytes | None, value: Any) -> bytes | None:
    """Add a value to a HyperLogLog; a NaN is not added.

    Examples
    --------
    >>> approx_count(with_value(with_value(with_value(None, "a"), "b"), "a"))
    2
    """
    import datasketches

    if value != value:  # noqa: PLR0124 (of a NaN alone)
        return sketch
    if sketch is None:
        counted = datasketches.hll_sketch(_LOG_BUCKETS, datasketches.HLL_8)
    else:
        counted = datasketches.hll_sketch.deserialize(sketch)
    counted.update(value if type(value) is str else _canonical(value))
    data: bytes = counted.serialize_compact()
    return data


def _canonical(value: Any) -> int | float | str:
    """Return equal numbers, texts or floats for values that are equal."""
    if isinstance(value, datetime):
        return epoch(value, "us")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float | str):
        return value
    raise TopologyError(f"{value!r} is a {type(value).__name__}, which approx_n_unique() does not count")


def union_of_values(sketch: bytes | None, other: bytes | None) -> bytes | None:
    """Merge two HyperLogLogs.

    Examples
    --------
    >>> approx_count(union_of_values(with_value(None, 1), with_value(None, 2)))
    2
    """
    import datasketches

    if sketch is None or other is None:
        return other if sketch is None else sketch
    union = datasketches.hll_union(_LOG_BUCKETS)
    for data in (sketch, other):
        union.update(datasketches.hll_sketch.deserialize(data))
    merged: bytes = union.get_result(datasketches.HLL_8).serialize_compact()
    return merged


def approx_count(sketch: bytes | None) -> int:
    """Return the number of different values of a HyperLogLog."""
    import datasketches

    return 0 if sketch is None else round(datasketches.hll_sketch.deserialize(sketch).get_estimate())


def with_number(sketch: bytes | None, number: float) -> bytes | None:
    """Add a number to a t-digest; a NaN is not added.

    Examples
    --------
    >>> approx_quantile(with_number(with_number(None, 1), 9), 1.0)
    9.0
    """
    import datasketches

    if number != number:  # noqa: PLR0124 (of a NaN alone)
        return sketch
    if sketch is None:
        digest = datasketches.tdigest_double(_COMPRESSION)
    else:
        digest = datasketches.tdigest_double.deserialize(sketch)
    digest.update(float(number))
    data: bytes = digest.serialize()
    return data


def union_of_numbers(sketch: bytes | None, other: bytes | None) -> bytes | None:
    """Merge two t-digests.

    Examples
    --------
    >>> approx_quantile(union_of_numbers(with_number(None, 1), with_number(None, 9)), 0.0)
    1.0
    """
    import datasketches

    if sketch is None or other is None:
        return other if sketch is None else sketch
    merged = datasketches.tdigest_double.deserialize(sketch)
    merged.merge(datasketches.tdigest_double.deserialize(other))
    data: bytes = merged.serialize()
    return data


def approx_quantile(sketch: bytes | None, quantile: float) -> float | None:
    """Return a quantile of a t-digest; null without a number."""
    import datasketches

    if sketch is None:
        return None
    result: float = datasketches.tdigest_double.deserialize(sketch).get_quantile(quantile)
    return result


FUNCTIONS = {
    function.__name__: function
    for function in (with_value, union_of_values, approx_count, with_number, union_of_numbers, approx_quantile)
}
"""The functions that generated code calls."""
