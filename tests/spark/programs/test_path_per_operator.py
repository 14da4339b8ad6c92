"""`spark.kstreams.path.<operator>`: one operator decides the path of its sub-topology; `explain` says who decided."""

from __future__ import annotations

from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.runtime.spark import engine

pytestmark = pytest.mark.spark


def counted_beside_shouts() -> ks.StreamsBuilder:
    """Two sub-topologies that have nothing to do with each other: only the first keeps state."""
    builder = ks.StreamsBuilder()
    kept = builder.stream("sales", key=str, value=int).filter(ks.value > 1, name="kept").group_by_key()
    kept.count(name="counted").to_stream().to("out")
    builder.stream("words", key=str, value=str).map_values(ks.value + "!", value=str, name="shouted").to("loud")
    return builder


def into_a_repartition() -> ks.StreamsBuilder:
    """Renamed sales go through a repartition topic to what PySpark cannot say."""
    builder = ks.StreamsBuilder()
    named = builder.stream("sales", key=str, value=int).select_key(ks.key + "!", key=str, name="named")
    named.repartition(name="by-name").peek(lambda key, n: None, name="look").to("out", name="written")
    return builder


def explained(builder: ks.StreamsBuilder, **paths: str) -> dict[str, Any]:
    """The rows of `explain` by operator; of one on both sides of a topic, that of the writing side."""
    rows = engine.explain(builder.build(), Config.of({"application.id": "app"} | settings(paths)))
    return {row.operator: row for row in reversed(rows)}


def settings(paths: dict[str, str]) -> dict[str, str]:
    return {"spark.kstreams.path" + (f".{name}" if name != "application" else ""): to for name, to in paths.items()}


def test_an_operator_takes_its_sub_topology_to_the_relational_path_and_no_other() -> None:
    rows = explained(counted_beside_shouts(), counted="relational")
    assert {rows[name].path for name in ("kept", "counted")} == {"relational"}
    assert {rows[name].decided_by for name in ("kept", "counted")} == {"spark.kstreams.path.counted"}
    assert (rows["shouted"].path, rows["shouted"].decided_by) == ("task", "measured")


def test_an_operator_keeps_its_sub_topology_in_tasks_whatever_the_application_asks_for() -> None:
    rows = explained(counted_beside_shouts(), application="relational", kept="task")
    assert (rows["kept"].path, rows["kept"].why) == ("task", "spark.kstreams.path.kept is task")
    assert (rows["counted"].path, rows["counted"].why) == ("task", "with kept, in one sub-topology")
    assert rows["counted"].decided_by == "spark.kstreams.path.kept"
    assert (rows["shouted"].path, rows["shouted"].decided_by) == ("relational", "spark.kstreams.path")


def test_what_nobody_asks_for_is_decided_by_what_was_measured_or_is_declared() -> None:
    rows = explained(counted_beside_shouts())
    assert (rows["counted"].decided_by, rows["shouted"].decided_by) == ("declared", "measured")
    assert explained(counted_beside_shouts(), application="task")["kept"].decided_by == "spark.kstreams.path"
    rows = explained(into_a_repartition())
    assert (rows["look"].decided_by, rows["written"].decided_by) == ("declared", "declared")


def test_generated_names_are_names_too() -> None:
    rows = explained(counted_beside_shouts(), **{"KSTREAM-SOURCE-0000000000": "relational"})
    assert rows["counted"].path == "relational"


def test_with_state_behind_a_repartition_goes_what_is_before_it() -> None:
    """They are one query."""
    builder = ks.StreamsBuilder()
    named = builder.stream("sales", key=str, value=int).select_key(ks.key + "!", key=str, name="named")
    named.group_by_key().count(name="counted").to_stream().to("out")
    rows = explained(builder, counted="relational")
    assert {rows[name].path for name in ("named", "counted")} == {"relational"}
    assert rows["named"].decided_by == "spark.kstreams.path.counted"
    assert "computed in the query of sub-topology 1" in rows["named"].why
    with pytest.raises(ConfigError, match="that cannot be in one query"):
        explained(builder, counted="relational", named="task")


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (
            {"count": "relational"},
            "spark.kstreams.path.count: there is no operator count; the nearest is counted; "
            "`kstreams explain` shows all",
        ),
        ({"xyz": "task"}, "spark.kstreams.path.xyz: there is no operator xyz; `kstreams explain` shows all"),
        ({"kept": "auto"}, "spark.kstreams.path.kept cannot be 'auto': say task or relational"),
        (
            {"kept": "task", "counted": "relational"},
            "spark.kstreams.path.kept is task and spark.kstreams.path.counted is relational, but they are in one "
            "sub-topology, which takes one path: a repartition between them makes two",
        ),
    ],
)
def test_what_cannot_be_chosen_is_an_error_that_says_why(paths: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        explained(counted_beside_shouts(), **paths)
    assert str(refused.value) == said


def test_an_operator_that_cannot_or_whose_neighbour_cannot_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        explained(into_a_repartition(), look="relational")
    assert str(refused.value) == (
        "spark.kstreams.path.look cannot be relational: its function is called for its effect"
    )
    with pytest.raises(ConfigError) as refused:
        explained(into_a_repartition(), written="relational")
    assert str(refused.value) == (
        "spark.kstreams.path.written cannot be relational: look is in the same sub-topology, and its function is "
        "called for its effect; a repartition between them makes two sub-topologies"
    )


def test_what_only_tasks_can_follow_is_not_overruled() -> None:
    asked = {"spark.kstreams.path.kept": "relational", "max.timestamp.ahead": 5}
    with pytest.raises(ConfigError) as refused:
        engine.explain(counted_beside_shouts().build(), Config.of(asked))
    why = "max.timestamp.ahead is set: only tasks can follow it"
    assert str(refused.value) == f"spark.kstreams.path.kept cannot be relational: {why}"


def test_a_topology_put_together_by_hand_runs_as_tasks_only() -> None:
    topology = ks.Topology()
    topology.add_source("read", "in", key=str, value=str).add_sink("write", "out", "read", key=str, value=str)
    for said, refused in (("task", False), ("relational", True)):
        config = Config.of({"application.id": "app", "spark.kstreams.path.read": said})
        if refused:
            with pytest.raises(ConfigError, match="the topology was put together by hand"):
                engine.explain(topology, config)
        else:
            assert {row.path for row in engine.explain(topology, config)} == {"task"}


def test_what_tasks_read_from_a_repartition_topic_tasks_write() -> None:
    rows = explained(into_a_repartition(), application="relational")
    assert {row.path for row in rows.values()} == {"task"}
    assert rows["by-name-repartition-source"].why.startswith("a sub-topology that cannot be in one query with it")
