"""Which sub-topologies run as queries of PySpark: those whose differences the user accepts, or that he asks for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.dsl.operator import operators
from kstreams.errors import ConfigError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.code.forms import differences_of
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.settings import ACCEPTABLE


class Sale(msgspec.Struct):
    amount: int


def windows() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    by_user = builder.stream("sales", key=str, value=Sale, name="sales").group_by_key()
    counts = by_user.windowed_by(ks.TimeWindows(size=60_000, grace=0)).count(name="counted")
    counts.to_stream().to("counts", name="written")
    return builder


def explained(builder: ks.StreamsBuilder, **settings: Any) -> dict[str, Any]:
    named = {f"spark.kstreams.{name}": value for name, value in settings.items()}
    return {row.operator: row for row in engine.explain(builder.build(), Config.of({"application.id": "a"} | named))}


def test_without_a_word_of_the_user_windows_run_as_tasks_with_the_name_that_accepts_the_difference() -> None:
    rows = explained(windows())
    assert {row.path for row in rows.values()} == {"task"}
    assert rows["counted"].why.endswith("spark.kstreams.accept=late,updates accepts it")
    assert rows["sales"].why.endswith("spark.kstreams.accept=decoding accepts it")


def test_accepted_differences_let_a_query_be_chosen() -> None:
    rows = explained(windows(), accept="late, updates, decoding, headers")
    assert {row.path for row in rows.values()} == {"relational"}
    assert rows["counted"].why.startswith("in the query that --code prints; ")


def test_one_difference_that_is_not_accepted_keeps_all_of_a_query_in_tasks() -> None:
    rows = explained(windows(), accept="late,decoding,headers")
    assert {row.path for row in rows.values()} == {"task"}
    assert "spark.kstreams.accept=updates" in rows["counted"].why


def test_who_asks_for_the_path_accepts_its_differences() -> None:
    assert {row.path for row in explained(windows(), path="relational").values()} == {"relational"}
    assert {row.path for row in explained(windows(), **{"path.counted": "relational"}).values()} == {"relational"}


def test_an_unknown_difference_is_refused_with_the_list() -> None:
    with pytest.raises(ConfigError, match="cannot name 'slow': give some of decoding, headers, late, order, repeats,"):
        explained(windows(), accept="late,slow")


def test_stateless_parts_stay_tasks_whatever_is_accepted() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("sales", key=str, value=Sale).filter(ks.col("amount") > 1).to("big")
    rows = explained(builder, accept=",".join(ACCEPTABLE))
    assert {(row.path, row.decided_by) for row in rows.values()} == {("task", "measured")}


def test_what_is_not_written_to_a_topic_keeps_its_sub_topology_in_tasks() -> None:
    builder = windows()
    builder.stream("words", key=str, value=str).group_by_key().count(name="kept")
    rows = explained(builder, path="relational")
    assert (rows["counted"].path, rows["kept"].path) == ("relational", "task")


def test_every_difference_has_a_name_that_can_be_accepted_and_every_name_is_of_some_operator() -> None:
    forms = [operators.of_type(node).spark for node in operators.node_types]
    assert {difference.name for form in forms for difference in form.differences} == set(ACCEPTABLE)
    assert all(form.write is not None for form in forms if form.differences)


def names_of_differences(builder: ks.StreamsBuilder) -> dict[str, tuple[str, ...]]:
    graph = builder.build().graph
    typed = TypedGraph(graph)
    return {node.name: tuple(difference.name for difference in differences_of(node, typed)) for node in graph}


def test_differences_are_those_of_the_node_not_of_its_kind() -> None:
    names = names_of_differences(windows())
    assert (names["sales"], names["counted"], names["written"]) == (("decoding",), ("late", "updates"), ("headers",))
    builder = ks.StreamsBuilder()
    raw = builder.stream("raw", key=bytes, value=bytes, name="raw")
    windowed = raw.group_by_key().windowed_by(ks.TimeWindows(size=60_000, grace=0))
    windowed.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count(name="final").to_stream().to("counts")
    names = names_of_differences(builder)
    assert (names["raw"], names["final"]) == ((), ("late",))


class Price(msgspec.Struct):
    euros: float
    cents: int


class Sum(msgspec.Struct):
    total: float | None


@pytest.mark.parametrize(("column", "names"), [("euros", ("updates", "order")), ("cents", ("updates",))])
def test_sums_of_fractions_depend_on_the_order_in_which_they_are_added(column: str, names: tuple[str, ...]) -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("prices", key=str, value=Price).group_by_key()
    grouped.aggregate(total=ks.col(column).sum(), value=Sum, name="summed").to_stream().to("sums")
    assert names_of_differences(builder)["summed"] == names


def test_operators_that_change_one_record_at_a_time_have_no_difference() -> None:
    builder = ks.StreamsBuilder()
    sales = builder.stream("sales", key=str, value=Sale)
    changed = sales.filter(ks.col("amount") > 1, name="filtered").map_values(ks.col("amount"), value=int, name="mapped")
    changed.flat_map_values(ks.value.cast(str).str.split("0"), value=str, name="items").select_key(
        ks.value, key=str, name="keyed"
    ).to_table(name="table").map_values(ks.value + "!", value=str, name="mapped-table").to_stream(name="stream").to(
        "out"
    )
    names = names_of_differences(builder)
    assert {name for name in names if not names[name]} == {
        "filtered", "mapped", "items", "keyed", "table", "mapped-table", "stream"
    }  # fmt: skip


def test_a_source_of_several_topics_takes_them_in_no_particular_order() -> None:
    builder = ks.StreamsBuilder()
    builder.stream(["north", "south"], key=bytes, value=bytes, name="both").to("all")
    assert names_of_differences(builder)["both"] == ("order",)


def test_a_repartition_has_an_order_unless_only_aggregations_read_it() -> None:
    builder = ks.StreamsBuilder()
    keyed = builder.stream("sales", key=str, value=Sale).select_key(ks.col("amount").cast(str), key=str)
    keyed.repartition(name="written").to("by-amount")
    keyed.repartition(name="counted").group_by_key().count().to_stream().to("counts")
    names = names_of_differences(builder)
    found = {name: names[name] for name in names if "counted" in name or "written" in name}
    assert sorted(found.values()) == [(), ("order",)]
