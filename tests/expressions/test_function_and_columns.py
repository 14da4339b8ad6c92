"""An expression means the same as a Python function and over Arrow columns."""

from __future__ import annotations

import math
from typing import Any, TypedDict

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams import expressions as ks
from kstreams.expressions.arrow import compute
from kstreams.expressions.exactness import Inexact, range_of
from tests.support.examples import examples


class Order(TypedDict):
    a: int | None
    b: int | None
    x: float | None
    y: float | None
    s: str | None
    t: str | None
    p: bool | None
    q: bool | None


SCHEMA = ks.Schema(str, Order)
ARROW = {"a": pa.int64(), "b": pa.int64(), "x": pa.float64(), "y": pa.float64(), "s": pa.string(), "t": pa.string()}
COLUMNS = {**ARROW, "p": pa.bool_(), "q": pa.bool_()}

ints = st.one_of(st.integers(-5, 5), st.sampled_from([2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**31]))
floats = st.one_of(st.sampled_from([0.0, -0.0, 0.1, -1.5, math.inf, math.nan, 1e300, 2.0**63]), st.floats(-100, 100))
texts = st.text(alphabet="abAZ ß\u0130\u017fé", max_size=4)


def numbers() -> st.SearchStrategy[ks.Expr]:
    leaves = st.one_of(
        st.sampled_from([ks.col(name) for name in "abxy"]),
        ints.map(ks.lit),
        st.sampled_from([0.5, -2.0, 3.0]).map(ks.lit),
    )
    return st.recursive(leaves, lambda inner: st.builds(_calculate, inner, inner, st.integers(0, 11)), max_leaves=5)


def _calculate(left: ks.Expr, right: ks.Expr, which: int) -> ks.Expr:
    return [
        lambda: left + right,
        lambda: left - right,
        lambda: left * right,
        lambda: left / right,
        lambda: left // right,
        lambda: left % right,
        lambda: -left,
        lambda: left.cast(int),
        left.abs,
        left.floor,
        lambda: ks.when(ks.col("p")).then(left).otherwise(-left),
        lambda: ks.when(left > right).then(left),
    ][which]()


def words() -> st.SearchStrategy[ks.Expr]:
    leaves = st.one_of(st.sampled_from([ks.col("s"), ks.col("t"), ks.key]), texts.map(ks.lit))
    return st.recursive(leaves, lambda inner: st.builds(_write, inner, inner, st.integers(0, 7)), max_leaves=4)


def _write(left: ks.Expr, right: ks.Expr, which: int) -> ks.Expr:
    return [
        lambda: left + right,
        left.str.upper,
        left.str.lower,
        lambda: left.str.slice(1, 2),
        lambda: left.fill_null(right),
        lambda: left.str.strip_chars("aß"),
        lambda: left.str.replace_all("a", "ßß"),
        lambda: ks.when(ks.col("q")).then(left).otherwise(right),
    ][which]()


def truths() -> st.SearchStrategy[ks.Expr]:
    leaves = st.one_of(
        st.sampled_from([ks.col("p"), ks.col("q")]),
        st.builds(_compare, numbers(), numbers(), st.integers(0, 5)),
        st.builds(_compare, words(), words(), st.integers(0, 5)),
        words().map(lambda text: text.str.contains("a")),
        words().map(lambda text: text.str.starts_with("a")),
        words().map(lambda text: text.str.ends_with("Z")),
        words().map(lambda text: text.str.len() > 2),
        words().map(lambda text: text.is_in(["a", "b", ""])),
        numbers().map(lambda number: number.is_null()),
        st.sampled_from([ks.col("a").is_in([1, 2]), ks.col("x").between(-1, 1.0), ks.timestamp > 10]),
    )
    return st.recursive(leaves, lambda inner: st.builds(_combine, inner, inner, st.integers(0, 3)), max_leaves=4)


def _compare(left: ks.Expr, right: ks.Expr, which: int) -> ks.Expr:
    return [left == right, left != right, left < right, left <= right, left > right, left >= right][which]


def _combine(left: ks.Expr, right: ks.Expr, which: int) -> ks.Expr:
    return [left & right, left | right, ~left, left.fill_null(right)][which]


values = st.fixed_dictionaries(
    {
        **{name: st.none() | ints for name in "ab"},
        **{name: st.none() | floats for name in "xy"},
        **{name: st.none() | texts for name in "st"},
        **{name: st.none() | st.booleans() for name in "pq"},
    }
)
records = st.lists(st.tuples(st.none() | texts, st.none() | values, st.integers(0, 20)), min_size=1, max_size=8)


def columns_of(rows: list[tuple[Any, Any, int]]) -> dict[str, pa.Array]:
    fields = {name: [None if v is None else v[name] for _, v, _ in rows] for name in COLUMNS}
    columns = {name: pa.array(column, COLUMNS[name]) for name, column in fields.items()}
    return {
        **columns,
        "key": pa.array([key for key, _, _ in rows], pa.string()),
        "timestamp": pa.array([time for _, _, time in rows], pa.int64()),
    }


def name_of(leaf: ks.Expr) -> str:
    return leaf.detail or leaf.operation.name.lower()


def same(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or (type(one) is type(other) and one == other)


@given(expr=st.one_of(numbers(), words(), truths()), rows=records)
@settings(max_examples=examples(400))
def test_columns_compute_what_the_function_computes_wherever_they_say_they_do(expr: ks.Expr, rows: list[Any]) -> None:
    columns = columns_of(rows)
    try:
        range_of(expr, lambda leaf: columns[name_of(leaf)])
    except Inexact:
        return
    function = ks.as_function(expr, key=str, value=Order)
    expected = [function(*row) for row in rows]
    computed = compute(expr, {repr(leaf): columns[name_of(leaf)] for leaf in expr.leaves})
    found = [computed.as_py()] * len(rows) if isinstance(computed, pa.Scalar) else computed.to_pylist()
    assert all(map(same, found, expected)), (expr, found, expected)


def test_a_cast_to_its_own_type_changes_nothing() -> None:
    function = ks.as_function((ks.value + 1).cast(int), key=str, value=int)
    assert function("k", 2**63 - 1, 0) == 2**63


@given(expr=st.one_of(numbers(), words(), truths()), rows=records)
def test_results_have_the_inferred_type(expr: ks.Expr, rows: list[Any]) -> None:
    kind = ks.type_of(expr, SCHEMA)
    function = ks.as_function(expr, key=str, value=Order)
    for row in rows:
        result = function(*row)
        assert kind.nullable if result is None else type(result) is kind.kind, (expr, kind, result)
