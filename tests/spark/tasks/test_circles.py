"""Sub-topologies that feed each other in a circle run in rounds within one step, until nothing is left for any."""

from __future__ import annotations

from pathlib import Path

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import LogError, ProcessingError, TopologyError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.io.sink import LogSink
from kstreams.runtime.spark.tasks import rounds
from tests.spark.running import Application, Row, changelog
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

TYPES = {name: (str, int) for name in ("work", "ping", "pong", "done")}
ROWS = [Row("work", key, start, at) for at, (key, start) in enumerate([("a", 5), ("b", 1), ("c", 0), ("a", 2)])]
SETTLED = {"a": 2, "b": 1, "c": 1}  # how many numbers of each key have come down to nothing


def countdown() -> ks.StreamsBuilder:
    """Two sub-topologies that pass a number to and fro, each taking one off; what comes to nothing is counted."""
    builder = ks.StreamsBuilder()
    coming = builder.stream("work", key=str, value=int).merge(builder.stream("pong", key=str, value=int))
    coming.filter(lambda key, left: left > 0).map_values(lambda left: left - 1, value=int).to("ping")
    coming.filter(lambda key, left: left == 0).group_by_key().count().to_stream().to("done")
    builder.stream("ping", key=str, value=int).map_values(lambda left: max(left - 1, 0), value=int).to("pong")
    return builder


@pytest.fixture
def circle(spark, tmp_path: Path) -> Application:
    return Application(spark, tmp_path, countdown(), TYPES).create("work", "ping", "pong").write(ROWS)


@pytest.mark.parametrize("per_step", few_of([1, 100], 1))
def test_records_go_round_until_none_is_left(circle: Application, per_step: int) -> None:
    circle.run(**{"spark.kstreams.max.records": per_step})
    assert circle.table("done") == SETTLED
    assert changelog(circle.rows("ping")).keys() == {"a", "b"}
    assert len(circle.rows("ping")) == 3 + 1 + 1


def test_a_step_goes_on_with_the_state_of_the_last_turn_before_it(circle: Application) -> None:
    circle.run(until_end=False)
    circle.write([Row("work", "a", 9, 50), Row("work", "b", 0, 51)]).run()
    assert circle.table("done") == {"a": 3, "b": 2, "c": 1}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_step_of_many_turns_counts_once_when_it_is_run_again(
    circle: Application, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    commit, times = LogSink.commit, []

    def dying(self, step, transactions, positions):
        times.append(step)
        if len(times) == 2 and moment == "before":
            raise LogError("the disk is gone")
        commit(self, step, transactions, positions)
        if len(times) == 2:
            raise LogError("the disk is gone")

    monkeypatch.setattr(LogSink, "commit", dying)
    settings = {"spark.kstreams.max.records": 2, "spark.kstreams.snapshot.every": 1}
    with pytest.raises(LogError, match="the disk is gone"):
        circle.run(**settings)
    circle.run(**settings)
    assert circle.table("done") == SETTLED
    assert len(circle.rows("done")) == sum(SETTLED.values())


PEOPLE = [Row("people", f"p{i}", f"c{i % 4}" if i % 6 else None, 10 + i) for i in range(20)]
MOVED = [Row("people", f"p{i}", f"c{i % 5}", 40 + i) for i in range(0, 20, 3)]
CITIES = [Row("cities", f"c{i}", f"City {i}", 20 + i) for i in range(3)] + [Row("cities", "c1", None, 70)]


@pytest.mark.parametrize("per_step", [9, 1000])
def test_both_sides_of_a_foreign_key_join_feed_each_other_across_partitions(
    spark, tmp_path: Path, per_step: int
) -> None:
    builder = ks.StreamsBuilder()
    people, cities = (builder.table(topic, key=str, value=str) for topic in ("people", "cities"))
    joined = people.left_join(cities, lambda city, name: f"{city}: {name}", foreign_key=lambda city: city, value=str)
    joined.to_stream().to("lives", key=str, value=str)
    types = {name: (str, str) for name in ("people", "cities", "lives")}
    app = Application(spark, tmp_path, builder, types, **{"spark.kstreams.max.records": per_step})
    app.create("people", partitions=2).create("cities", partitions=3).write(PEOPLE).write(CITIES).write(MOVED).run()
    last = {key: value for key, value, _ in app.driver_rows("lives", [*PEOPLE, *CITIES, *MOVED])}
    assert app.table("lives") == {key: value for key, value in last.items() if value is not None}


def test_an_error_in_a_later_turn_ends_the_step(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    coming = builder.stream("work", key=str, value=int).merge(builder.stream("pong", key=str, value=int))
    coming.map_values(lambda left: left - 1 + 0 // left, value=int, name="fragile").to("pong")
    app = Application(spark, tmp_path, builder, TYPES).create("work", "pong").write([Row("work", "k", 2, 1)])
    with pytest.raises(ProcessingError, match="fragile") as caught:
        app.run()
    assert caught.value.operator == "fragile"
    assert app.rows("pong") == []


def test_a_circle_without_end_is_told_so(circle: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MAX_ROUNDS", 3)
    with pytest.raises(TopologyError, match=r"\[0, 1\] feed each other without end: after 3 rounds"):
        circle.run()


def test_explain_says_what_a_circle_keeps_off_the_relational_path() -> None:
    rows = {row.operator: row for row in engine.explain(countdown().build(), Config.of(application_id="app"))}
    assert {row.path for row in rows.values()} == {"task"}
    assert "its sub-topology feeds itself, by way of others or not" in {row.why for row in rows.values()}
