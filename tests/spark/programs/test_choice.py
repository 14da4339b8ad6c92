"""Which sub-topologies run as queries of PySpark: those whose differences the user accepts, or that he asks for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.code.differences import differences_of
from kstreams.runtime.spark.code.program import DIFFERENCES, RULES
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
    with pytest.raises(ConfigError, match="cannot name 'slow': give some of decoding, headers, late, order, table, up"):
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


def test_every_operator_of_a_program_with_a_difference_names_it() -> None:
    """One that is in no list has all differences, so that nobody accepts one that he does not know."""
    assert set(DIFFERENCES) <= set(RULES)
    graph = windows().build().graph
    typed = TypedGraph(graph)
    names = {node.name: differences_of(node, typed) for node in graph}
    assert (names["sales"], names["counted"], names["written"]) == (("decoding",), ("late", "updates"), ("headers",))
