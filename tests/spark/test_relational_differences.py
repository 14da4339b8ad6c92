"""What is declared to differ on the relational path does, in exactly these results."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import kstreams as ks
from kstreams.dsl.operator import operators
from tests.spark.running import Application, Row
from tests.spark.windowed_topologies import (
    CACHED,
    SELF_JOINS,
    Build,
    Order,
    counts,
    counts_behind_a_repartition,
    joined_streams,
    joined_table,
    left_joined_streams,
    left_joined_table,
    named_session_counts,
    orders,
    outer_self_joined,
    paid_by,
    reduced_windows,
    self_joined,
    tumbling_counts,
)
from tests.support.examples import few_of

pytestmark = pytest.mark.spark


def ordered(*rows: tuple[str, int, int]) -> list[Row]:
    return [Row("in", key, Order("tea", 1), time, partition) for key, time, partition in rows]


def paid(*rows: tuple[str, int]) -> list[Row]:
    return [Row("paid", "a", by, time, 0) for by, time in rows]


def often(builder: ks.StreamsBuilder) -> None:
    orders(builder).group_by_key().count().filter(lambda key, count: count > 1).to_stream().to("out")


def copied(builder: ks.StreamsBuilder) -> None:
    builder.table("in", key=str, value=Order).map_values(lambda order: order.amount, value=int).to_stream().to("out")


def read_as_a_table(builder: ks.StreamsBuilder) -> None:
    orders(builder).to_table().map_values(lambda order: order.amount, value=int).to_stream().to("out")


def joined_globally(builder: ks.StreamsBuilder) -> None:
    payers = builder.global_table("paid", key=str, value=str)
    orders(builder).join(payers, paid_by, key_selector=lambda key, order: key, value=str).to("out")


def left_joined_globally(builder: ks.StreamsBuilder) -> None:
    payers = builder.global_table("paid", key=str, value=str)
    orders(builder).left_join(payers, paid_by, key_selector=lambda key, order: key, value=str).to("out")


def once_by_item(builder: ks.StreamsBuilder) -> None:
    once = orders(builder).deduplicate(10, by=lambda key, order: order.item, key=str)
    once.map_values(lambda order: order.amount, value=int).to("out")


def once_by_key(builder: ks.StreamsBuilder) -> None:
    orders(builder).deduplicate(10).map_values(lambda order: order.amount, value=int).to("out")


class Difference(NamedTuple):
    """Input for which the relational path gives something else, and what either path gives."""

    build: Build
    rows: list[Row]
    per_trigger: int
    exact: list[str]
    relational: list[str]


LOOK_UPS = (joined_table, left_joined_table, joined_globally, left_joined_globally)
JOINS = (joined_streams, left_joined_streams, self_joined, outer_self_joined, *LOOK_UPS)
DIFFERENT = {
    "WindowedAggregate: a record that comes too late is counted, in the batch that closes its window": Difference(
        tumbling_counts,
        ordered(("a", 1, 0), ("a", 40, 0), ("a", 2, 0)),
        100,
        ["a@0: 1", "a@40: 1"],
        ["a@0: 2", "a@40: 1"],
    ),
    "Repartition: a record is not late that follows a later one which was filtered out": Difference(
        counts_behind_a_repartition,
        ordered(("-", 100, 0), ("a", 5, 0), ("a", 50, 1)),
        100,
        ["a@50: 1"],
        ["a@0: 1", "a@50: 1"],
    ),
    "StreamJoin: a record that comes too late is joined, in the batch that lets its partner go": Difference(
        joined_streams,
        ordered(("a", 1, 0), ("a", 300, 0)) + paid(("p", 300), ("q", 2)),
        100,
        ["a: tea by p"],
        ["a: tea by p", "a: tea by q"],
    ),
    "WindowedAggregate: a record that comes too late lengthens a session, in the batch that closes it": Difference(
        named_session_counts,
        ordered(("a", 1, 0), ("a", 40, 0), ("a", 2, 0)),
        100,
        ["a@1: 1", "a@40: 1"],
        ["a@1: 2", "a@40: 1"],
    ),
    "OuterStreamJoin: a record that comes late and alone waits for its partner": Difference(
        left_joined_streams,
        ordered(("a", 50, 0), ("a", 1, 0)) + paid(("p", 60), ("q", 2)),
        100,
        ["a: tea by None", "a: tea by None", "a: tea by q"],
        ["a: tea by None", "a: tea by q"],
    ),
    "StreamAggregate: every record gives an update, also with a record cache": Difference(
        counts, ordered(("a", 1, 0), ("a", 2, 0)), 100, ["a: 2"], ["a: 1", "a: 2"]
    ),
    "StreamTableJoin: at one time, the row of the table goes first": Difference(
        joined_table, ordered(("a", 5, 0)) + paid(("p", 5)), 100, [], ["a: tea by p"]
    ),
    "LeftStreamTableJoin: at one time, the row of the table goes first": Difference(
        left_joined_table, ordered(("a", 5, 0)) + paid(("p", 5)), 100, ["a: tea by None"], ["a: tea by p"]
    ),
    "TableFilter: a row that is left out is deleted although it was never there": Difference(
        often, ordered(("a", 1, 0)), 100, [], ["a: None"]
    ),
    "Deduplicate: a duplicate is found in another partition": Difference(
        once_by_item, ordered(("a", 1, 0), ("b", 2, 1)), 100, ["a: 1", "b: 1"], ["a: 1"]
    ),
    "Deduplicate: a record that comes too late is dropped": Difference(
        once_by_key,
        ordered(("a", 1000, 0), ("c", 2000, 0), ("b", 1, 0)),
        1,
        ["a: 1", "b: 1", "c: 1"],
        ["a: 1", "c: 1"],
    ),
    "SelfJoin: a record at the epoch itself is dropped": Difference(
        self_joined, ordered(("a", 0, 0)), 100, ["a: 1, 1"], []
    ),
    "OuterSelfJoin: a record at the epoch itself is dropped": Difference(
        outer_self_joined, ordered(("a", 0, 0)), 100, ["a: 1, 1"], []
    ),
    "WindowedAggregate: a function leaves out a record at the epoch itself": Difference(
        reduced_windows, ordered(("a", 0, 0), ("a", 1, 0)), 100, ["a@0: 4"], ["a@0: 1"]
    ),
    "StreamJoin: a record at the epoch itself is dropped": Difference(
        joined_streams, ordered(("a", 0, 0)) + paid(("p", 0)), 100, ["a: tea by p"], []
    ),
}


@pytest.mark.parametrize("what", few_of(DIFFERENT, 2))
def test_what_is_declared_to_differ_does(spark, tmp_path: Path, what: str) -> None:
    case, builder = DIFFERENT[what], ks.StreamsBuilder(SELF_JOINS)
    case.build(builder)
    types = {"in": (str, Order), "paid": (str, str), "out": (str, str if case.build in JOINS else int)}
    settings = {"spark.kstreams.max.records": case.per_trigger} | CACHED
    app = Application(spark, tmp_path, builder, types, **settings).create("in", "paid").write(case.rows)
    found = {}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = sorted(f"{key}: {value}" for key, value, _ in app.rows("out", prefix=f"{path}-"))
    assert found == {"relational": case.relational, "task": case.exact}


def test_on_either_path_a_partition_that_lags_is_read_before_another_goes_ahead(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    tumbling_counts(builder)
    types, settings = {"in": (str, Order), "out": (str, int)}, {"spark.kstreams.max.records": 1} | CACHED
    app = Application(spark, tmp_path, builder, types, **settings).create("in")
    app.write(ordered(("b", 90, 1), ("b", 91, 1), ("a", 1, 0), ("a", 2, 0)))
    app.run(**{"spark.kstreams.path": "relational"})
    assert sorted(f"{key}: {value}" for key, value, _ in app.rows("out")) == ["a@0: 2", "b@90: 2"]


UNCOUNTED: dict[str, Build] = {
    "StreamAggregate": counts,
    "StreamTableJoin": joined_table,
    "LeftStreamTableJoin": left_joined_table,
    "GlobalTableJoin": joined_globally,
    "LeftGlobalTableJoin": left_joined_globally,
    "TableSource": copied,
    "ToTable": read_as_a_table,
}


@pytest.mark.parametrize("operator", few_of(UNCOUNTED, 1))
def test_what_has_no_key_or_no_value_is_dropped_uncounted(spark, tmp_path: Path, operator: str) -> None:
    build, builder = UNCOUNTED[operator], ks.StreamsBuilder()
    build(builder)
    types = {"in": (str, Order), "paid": (str, str), "out": (str, str if build in JOINS else int)}
    app = Application(spark, tmp_path, builder, types).create("in", "paid")
    app.write([Row("in", None, None, 1), Row("paid", None, "p", 2)])
    dropped = {}
    for path in ("relational", "task"):
        where = {"spark.kstreams.prefix": f"{path}-", "spark.kstreams.checkpoint": str(tmp_path / path)}
        dropped[path] = sum(app.run(**where, **{"spark.kstreams.path": path}).dropped.values())
    assert (dropped["relational"], dropped["task"] > 0) == (0, True)


def test_every_declared_difference_is_shown() -> None:
    assert {what.partition(":")[0] for what in DIFFERENT} | UNCOUNTED.keys() == {
        kind.__name__ for kind in operators.node_types if operators.of_type(kind).spark.difference
    }
