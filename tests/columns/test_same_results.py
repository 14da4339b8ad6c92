"""Columns are an optimisation that nobody can see: outputs, stores, changelogs, memos and drops are the same."""

from __future__ import annotations

import json
from typing import Any, TypedDict

from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.kernel.batch import Row
from tests.columns.both_paths import assert_same, cut
from tests.support.examples import examples


class Order(TypedDict):
    shop: str | None
    amount: int | None
    price: float | None
    paid: bool | None


keys = st.sampled_from([b"a", b"b", b"c", "é".encode(), None])
numbers = st.none() | st.integers(-3, 9) | st.sampled_from([2**53 + 1, 2**57, -(2**57)])
prices = st.none() | st.sampled_from([0.1, 0.2, 0.7, -1e16, 1e16, 3.0, 0.0, -0.0])
orders = st.fixed_dictionaries(
    {"shop": st.none() | st.sampled_from("xyzß"), "amount": numbers, "price": prices, "paid": st.none() | st.booleans()}
)
values = st.none() | orders.map(lambda order: json.dumps(order).encode())
times = st.integers(0, 60) | st.sampled_from([7, 7, 7, 200])
rows = st.lists(st.builds(Row, keys, values, times, st.just(())), min_size=1, max_size=40)
cuts = st.lists(st.integers(0, 40), max_size=6)
commits = st.lists(st.booleans(), max_size=6)

amount, price, shop, paid = (ks.col(name) for name in ("amount", "price", "shop", "paid"))
predicates = st.sampled_from(
    [
        amount > 2,
        paid,
        ~paid | (price < 0.5),
        (amount % 3 == 0) & ~shop.is_null(),
        shop.str.upper().is_in(["X", "SS"]),
        ks.key.str.starts_with("a"),
        (ks.timestamp // 10) % 2 == 0,
        ks.value.is_null(),
        amount * amount + 1 > 10,
    ]
)
steps = st.lists(
    st.one_of(
        predicates.map(lambda p: ("filter", p)),
        predicates.map(lambda p: ("filter_not", p)),
        st.just(("map_values", ks.struct(shop=shop, amount=amount + 1, price=price * 2, paid=paid))),
    ),
    max_size=3,
)
aggregates = st.lists(
    st.sampled_from(
        [
            ks.len(),
            amount.count(),
            amount.sum(),
            amount.min(),
            amount.max(),
            amount.mean(),
            price.sum(),
            price.min(),
            price.max(),
            price.mean(),
            shop.first(),
            shop.last(),
            (amount * price).sum(),
            ks.timestamp.max() - ks.timestamp.min(),
        ]
    ),
    min_size=1,
    max_size=4,
)
windows = st.one_of(
    st.none(),
    st.builds(ks.TimeWindows, size=st.just(10), grace=st.sampled_from([0, 5, 30])),
    st.builds(ks.TimeWindows, size=st.just(10), advance=st.sampled_from([3, 5]), grace=st.sampled_from([0, 7])),
)


def chain(builder: ks.StreamsBuilder, steps: list[tuple[str, Any]]) -> Any:
    stream = builder.stream("in", key=str, value=Order)
    for method, expr in steps:
        options = {"value": Order} if method == "map_values" else {}
        stream = getattr(stream, method)(expr, **options)
    return stream


@given(steps=steps, rows=rows, cuts=cuts)
@settings(max_examples=examples(100))
def test_a_stateless_chain_writes_the_same_records(steps: list[Any], rows: list[Row], cuts: list[int]) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        chain(builder, steps).to("out", key=str, value=Order)
        return builder.build()

    assert_same(build, cut(rows, cuts))


@given(steps=steps, aggregates=aggregates, windows=windows, close=st.booleans(), rows=rows, cuts=cuts, commits=commits)
@settings(max_examples=examples(300))
def test_an_aggregation_by_expression_emits_and_keeps_the_same(
    steps: list[Any], aggregates: list[Any], windows: Any, close: bool, rows: Any, cuts: Any, commits: Any
) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        grouped = chain(builder, steps).group_by_key()
        if windows is not None:
            grouped = grouped.windowed_by(windows)
            if close:
                grouped = grouped.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
        named = {f"f{at}": expr for at, expr in enumerate(aggregates)}
        table = grouped.aggregate(**named)
        table.to_stream().map(lambda key, value: (str(key), str(value))).to("out", key=str, value=str)
        return builder.build()

    assert_same(build, cut(rows, cuts), commits)


@given(windows=windows, rows=rows, cuts=cuts, commits=commits)
def test_a_count_emits_and_keeps_the_same(windows: Any, rows: Any, cuts: Any, commits: Any) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        grouped = builder.stream("in", key=str, value=Order).group_by_key()
        table = (grouped if windows is None else grouped.windowed_by(windows)).count()
        table.to_stream().map(lambda key, value: (str(key), value)).to("out", key=str, value=int)
        return builder.build()

    assert_same(build, cut(rows, cuts), commits)
