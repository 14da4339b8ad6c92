"""Joins with tables in columns: each key of a batch is looked up once, and nobody can see that it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.kernel.batch import Batch, Row
from kstreams.processor.task.columns.plan import ColumnPlan, plan_regions
from kstreams.processor.task.columns.region import Region
from tests.columns.random_topologies import Order
from tests.columns.staged import run_staged
from tests.columns.test_same_results import cuts, rows
from tests.support.examples import examples

shop, amount, price = (ks.col(name) for name in ("shop", "amount", "price"))
joiners = st.sampled_from(
    [
        ks.struct(shop=ks.right.col("shop"), amount=amount, price=price + ks.right.col("price")),
        ks.struct(key=ks.key, both=ks.coalesce(ks.right.col("amount"), amount)),
        ks.right.col("amount") > amount,
        ks.right.col("shop"),
    ]
)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each batch of a region, whether it went through columns."""
    found: list[bool] = []
    process = Region.process

    def watched(region: Region, batch: Batch) -> bool:
        found.append(process(region, batch))
        return found[-1]

    monkeypatch.setattr(Region, "process", watched)
    return found


def build(say: Callable[[ks.StreamsBuilder, Any], Any]) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    say(builder, builder.stream("in", key=str, value=Order))
    return builder.build()


def assert_same(topology: Callable[[], ks.Topology], topics: Any, cuts: Any = ()) -> Any:
    runs = [run_staged(topology(), topics, columns=columns, cuts=cuts, caching=True) for columns in (True, False)]
    assert runs[0] == runs[1]
    return runs[0]


def joined_with_itself(stream: Any) -> Any:
    return stream.join(stream.to_table(materialized="own"), ks.right.col("amount"))


def order(**fields: Any) -> bytes:
    return json.dumps({"shop": "x", "amount": 1, "price": 1.0, "paid": True, **fields}).encode()


@given(joiner=joiners, left=st.booleans(), globally=st.booleans(), rows=rows, table=rows, cuts=cuts)
@settings(max_examples=examples(150))
def test_a_join_gives_the_same(joiner: Any, left: bool, globally: bool, rows: Any, table: Any, cuts: Any) -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        join = stream.left_join if left else stream.join
        if globally:
            found = join(builder.global_table("table", key=str, value=Order), joiner, key_selector=shop)
        else:
            found = join(builder.table("table", key=str, value=Order), joiner)
        found.to("out", key=str)

    assert_same(lambda: build(say), {"in": rows, "table": table}, cuts)


def test_a_join_may_look_up_what_another_join_has_found(taken: list[bool]) -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        users = builder.table("before", key=str, value=dict[str, str])
        cities = builder.global_table("cities", key=str, value=str)
        user = stream.join(users, ks.struct(city=ks.right.col("city"), amount=amount))
        place = ks.struct(place=ks.right.value, amount=amount)
        user.join(cities, place, key_selector=ks.col("city")).filter(amount > 1).to("out", key=str)

    topics = {
        "in": [Row(b"anna", order(amount=n), n, ()) for n in range(4)],
        "before": [Row(b"anna", b'{"city":"KL"}', 0, ())],
        "cities": [Row(b"KL", "Köln".encode(), 0, ())],
    }
    topics["in"] += [Row(b"nobody", order(), 9, ())]
    seen = assert_same(lambda: build(say), topics)
    written = [row[1] for part in seen.values() for row in part.outputs.get("out", ())]
    assert written == ['{"place":"Köln","amount":%d}'.replace("%d", str(n)).encode() for n in (2, 3)]
    assert any(taken)


def test_a_left_join_with_a_global_table_takes_records_without_a_mapped_key(taken: list[bool]) -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        names = builder.global_table("names", key=str, value=str)
        name = ks.coalesce(ks.right.value, "nobody")
        stream.left_join(names, name, key_selector=shop).to("out", key=str)

    topics = {"in": [Row(b"k", order(shop=at), 0, ()) for at in ("a", None, "b")], "names": [Row(b"a", b"Anna", 0, ())]}
    seen = assert_same(lambda: build(say), topics)
    assert [row[1] for part in seen.values() for row in part.outputs.get("out", ())] == [b"Anna", b"nobody", b"nobody"]
    assert any(taken)


def test_each_key_of_a_batch_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def row_of(key: str, row: Any) -> Any:
        looked.append(key)
        return row

    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        names = builder.table("names", key=str, value=str, materialized="names")
        shown = names.map_values(row_of, with_key=True, value=str)
        stream.join(shown, ks.right.value).to("out", key=str)

    topics = {"in": [Row(b"a", order(), n, ()) for n in range(5)], "names": [Row(b"a", b"Anna", 0, ())]}
    run_staged(build(say), {"in": topics["in"], "names": topics["names"]}, columns=True, cuts=(), caching=True)
    assert len(looked) < 5


def test_records_that_the_join_drops_are_counted_one_by_one(taken: list[bool]) -> None:
    def say(builder: ks.StreamsBuilder, stream: Any) -> None:
        stream.join(builder.table("names", key=str, value=str), ks.right.value, name="names").to("out", key=str)

    topics = {"in": [Row(b"a", order(), 1, ()), Row(None, order(), 2, ()), Row(b"a", None, 3, ())], "names": []}
    seen = assert_same(lambda: build(say), topics)
    assert seen[0].dropped["names", "null key or value"] == 2
    assert not any(taken)


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda b, s: s.join(b.table("t", key=str, value=Order), lambda left, right: left), "not made of expressions"),
        (lambda b, s: s.join(b.table("t", key=str, value=list[int]), ks.right.value), "no columnar form"),
        (
            lambda b, s: s.join(
                b.table("t", key=str, value=str, materialized=ks.Materialized("t", history_retention=9)), ks.right.value
            ),
            "not made of expressions",
        ),
        (
            lambda b, s: joined_with_itself(s.filter(amount > 1)),
            "paths meet in",
        ),
    ],
)
def test_where_a_lookup_has_no_columns_the_reason_says_so(say: Any, why: str) -> None:
    topology = build(lambda builder, stream: say(builder, stream).map_values(str).to("out", key=str, value=str))
    planned = [plan_regions(part).get("KSTREAM-SOURCE-0000000000") for part in topology.sub_topologies]
    (found,) = [plan for plan in planned if plan is not None]
    reasons = [str(target.leaves_since) for target in found.targets] if isinstance(found, ColumnPlan) else [found]
    assert any(why in reason for reason in reasons), reasons
